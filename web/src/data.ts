// The data in the page, as src/report/page.cpp packs it: texts and bin edges once, rows that point at them.

export interface Histogram {
  cold: number;
  invalidated: number;
  edge: number[];   // indices into `edges`
  count: number[];
  error?: number[];  // 95 % half-widths; absent = exact
  coldError: number;
  total: number;
}

export interface Site {
  id: number;
  module: string;
  offset: number;
  function: string;
  file: string;
  line: number;
  accesses: number;
  writes: number;
  reuse: Histogram;
  inlined: {function: string; file: string; line: number}[];
}
export interface Context { parent: number; function: string; file: string; line: number; module: string; offset: number }
export interface Pair { use: number; reuse: number; useContext: number; reuseContext: number; count: number; distances: Histogram }
export interface DataObject { kind: string; name: string; bytes: number; context: number; accesses: number; reuse: Histogram }
export interface Thread { id: number; accesses: number; reuse: Histogram }
export interface Phase { begin: number; end: number; distinct: number; reuse: Histogram }
// What did not fit: how many, and all of them summed.
export interface Rest { number: number; weight: number; reuse: Histogram }

export interface Profile {
  label: string;
  method: string;
  model: string;
  granularity: number;
  accesses: number;
  distinct: number;
  machine: string;
  clock: string;
  command: string[];
  notes: string[];
  sampled?: {period: number; samples: number; pruned: number};
  reuse: Histogram;
  time?: Histogram;
  sites: Site[];
  siteById: Map<number, Site>;
  contexts: Context[];
  pairs: Pair[];
  objects: DataObject[];
  threads: Thread[];
  phases: Phase[];
  restSites: Rest;
  restPairs: Rest;
  restObjects: Rest;
}

type PackedHistogram = number[];
interface Packed {
  schema: string;
  caches: {name: string; bytes: number; ways: number; line: number}[];
  cachesAreHosts: boolean;
  strings: string[];
  edges: number[];
  profiles: any[];
  sources: [number, string][];
}

export let edges: number[] = [];
export let profiles: Profile[] = [];
export let caches: Packed['caches'] = [];
export let cachesAreHosts = false;
export const sources = new Map<string, string[]>();

function unpack(packed: PackedHistogram, errors?: number[]): Histogram {
  const n = (packed.length - 2) >> 1;
  const edge = new Array<number>(n), count = new Array<number>(n);
  let total = packed[0]! + packed[1]!;
  for (let i = 0; i < n; ++i) {
    edge[i] = packed[2 + 2 * i]!;
    total += count[i] = packed[3 + 2 * i]!;
  }
  const out: Histogram = {cold: packed[0]!, invalidated: packed[1]!, edge, count, total, coldError: 0};
  if (errors) {
    out.coldError = errors[0]!;
    out.error = errors.slice(2);
  }
  return out;
}

export function load(text: string): void {
  const packed = JSON.parse(text) as Packed;
  const word = (index: number) => packed.strings[index] ?? '';
  const rest = (row?: [number, number, PackedHistogram]): Rest =>
    row ? {number: row[0], weight: row[1], reuse: unpack(row[2])} : {number: 0, weight: 0, reuse: unpack([0, 0])};
  edges = packed.edges;
  caches = packed.caches;
  cachesAreHosts = packed.cachesAreHosts;
  for (const [file, content] of packed.sources) sources.set(word(file), content.split('\n'));
  profiles = packed.profiles.map(p => {
    const sites: Site[] = p.sites.map((r: any[]) => ({
      id: r[0], module: word(r[1]), offset: r[2], function: word(r[3]), file: word(r[4]), line: r[5], accesses: r[6],
      writes: r[7], reuse: unpack(r[8]),
      inlined: (r[9] ?? []).map((f: number[]) => ({function: word(f[0]!), file: word(f[1]!), line: f[2]!})),
    }));
    return {
      label: p.label, method: p.method, model: p.model, granularity: p.granularity, accesses: p.accesses,
      distinct: p.distinct, machine: p.machine, clock: p.clock, command: p.command, notes: p.notes, sampled: p.sampled,
      reuse: unpack(p.reuse, p.reuseError), time: p.time ? unpack(p.time, p.timeError) : undefined,
      sites, siteById: new Map(sites.map(site => [site.id, site])),
      contexts: p.contexts.map((r: number[]) =>
        ({parent: r[0], function: word(r[1]!), file: word(r[2]!), line: r[3], module: word(r[4]!), offset: r[5]})),
      pairs: p.pairs.map((r: any[]) =>
        ({use: r[0], reuse: r[1], useContext: r[2], reuseContext: r[3], count: r[4], distances: unpack(r[5])})),
      objects: p.objects.map((r: any[]) =>
        ({kind: word(r[0]), name: word(r[1]), bytes: r[2], context: r[3], accesses: r[4], reuse: unpack(r[5])})),
      threads: p.threads.map((r: any[]) => ({id: r[0], accesses: r[1], reuse: unpack(r[2])})),
      phases: p.phases.map((r: any[]) => ({begin: r[0], end: r[1], distinct: r[2], reuse: unpack(r[3])})),
      restSites: rest(p.restSites), restPairs: rest(p.restPairs), restObjects: rest(p.restObjects),
    } as Profile;
  });
}

export const lowOf = (edge: number) => edges[2 * edge]!;
export const highOf = (edge: number) => edges[2 * edge + 1]!;

// Powers of two: [0,1), [1,2), [2,4) … A bin that straddles an edge is spread by width.
export interface Octave { low: number; high: number; count: number; error: number }
export function octaves(histogram: Histogram): Octave[] {
  const slots = new Map<number, Octave>();
  histogram.edge.forEach((edge, i) => {
    const low = lowOf(edge), high = highOf(edge), width = high - low;
    for (let at = low; at < high;) {
      const power = at < 1 ? -1 : Math.floor(Math.log2(at));
      const from = power < 0 ? 0 : 2 ** power, to = power < 0 ? 1 : 2 ** (power + 1);
      const until = Math.min(to, high), share = (until - at) / width;
      const slot = slots.get(power) ?? {low: from, high: to, count: 0, error: 0};
      slot.count += histogram.count[i]! * share;
      slot.error = Math.hypot(slot.error, (histogram.error?.[i] ?? 0) * share);
      slots.set(power, slot);
      at = until;
    }
  });
  return [...slots.values()].sort((a, b) => a.low - b.low);
}

export function percentile(histogram: Histogram, share: number): number {
  const finite = histogram.total - histogram.cold - histogram.invalidated;
  let seen = 0;
  for (let i = 0; i < histogram.edge.length; ++i) {
    const count = histogram.count[i]!;
    if (count > 0 && seen + count >= share * finite) {
      const inside = Math.max(0, Math.min(1, (share * finite - seen) / count));
      return lowOf(histogram.edge[i]!) + inside * (highOf(histogram.edge[i]!) - 1 - lowOf(histogram.edge[i]!));
    }
    seen += count;
  }
  return 0;
}

export function merged(histograms: Histogram[]): Histogram {
  const counts = new Map<number, number>();
  const out: Histogram = {cold: 0, invalidated: 0, edge: [], count: [], total: 0, coldError: 0};
  for (const histogram of histograms) {
    out.cold += histogram.cold;
    out.invalidated += histogram.invalidated;
    out.total += histogram.total;
    histogram.edge.forEach((edge, i) => counts.set(edge, (counts.get(edge) ?? 0) + histogram.count[i]!));
  }
  for (const [edge, count] of [...counts].sort((a, b) => lowOf(a[0]) - lowOf(b[0]))) {
    out.edge.push(edge);
    out.count.push(count);
  }
  return out;
}

// The root first. `contexts[0]` is the root and is left out.
export function pathOf(profile: Profile, context: number): Context[] {
  const out: Context[] = [];
  for (let at = context; at > 0 && out.length < 1000; at = profile.contexts[at]!.parent) out.unshift(profile.contexts[at]!);
  return out;
}

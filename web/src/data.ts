// The data in the page, as src/report/page.cpp packs it: texts and bin edges once, rows that point at them.

// A view of a packed row [cold, invalidated, edge, count, edge, count, …]: a page may hold 10^5 of them, so
// nothing is copied out.
export class Histogram {
  private sum = -1;
  // `errors`: 95 % half-widths [cold, invalidated, bin, bin, …]; absent = exact. `beyond`: of the sum from each bin on
  constructor(readonly packed: number[], readonly errors?: number[], readonly beyond?: number[]) {}
  get cold(): number { return this.packed[0]!; }
  get invalidated(): number { return this.packed[1]!; }
  get coldError(): number { return this.errors?.[0] ?? 0; }
  get bins(): number { return (this.packed.length - 2) >> 1; }
  edge(bin: number): number { return this.packed[2 + 2 * bin]!; }
  count(bin: number): number { return this.packed[3 + 2 * bin]!; }
  error(bin: number): number { return this.errors?.[2 + bin] ?? 0; }
  // Of all distances from this one on, the misses of a cache of so many blocks; 0: bins do not have it. As Histogram::beyond_error.
  beyondError(distance: number): number {
    if (!this.beyond) return 0;
    let next = 0;
    while (next < this.bins && lowOf(this.edge(next)) <= distance) ++next;
    const after = next < this.bins ? this.beyond[next]! : Math.hypot(this.errors?.[0] ?? 0, this.errors?.[1] ?? 0);
    if (next === 0 || highOf(this.edge(next - 1)) <= distance) return after;
    const here = this.beyond[next - 1]!;
    return lowOf(this.edge(next - 1)) === distance ? here : Math.max(here, after);
  }
  get total(): number {
    if (this.sum < 0) {
      this.sum = this.cold + this.invalidated;
      for (let i = 3; i < this.packed.length; i += 2) this.sum += this.packed[i]!;
    }
    return this.sum;
  }
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
  loop?: {function: string; file: string; line: number};  // where the innermost loop around it begins
  data: string;  // the object it accesses most
  timeShare: number;  // of the processor time; -1: not measured
  regular: number;    // share of its misses on a constant stride; -1: not measured
  fetches: number;    // lines it fetched into the cache of Profile.lineUse
  usedBytes: number;  // of these lines, before they left it
  usedError: number;  // of bytes per line, where lines were sampled
  member: string;     // of its data's type: "particle.mass"; empty: not known
  memberOffset: number;
}
export interface Context { parent: number; function: string; file: string; line: number; module: string; offset: number }
// `shared`: calls that both paths begin with; `meet`: where they part, in the user's own code.
export interface Pair { index: number; use: number; reuse: number; useContext: number; reuseContext: number; count: number; distances: Histogram; shared: number; meet: string }
export interface DataObject { kind: string; name: string; bytes: number; context: number; accesses: number; reuse: Histogram; fetches: number; usedBytes: number; usedError: number; type: string; typeBytes: number }
// One side of a line that threads invalidate for each other; `bytes` are ranges of the line, the end not included.
export interface SharingSide { site: number; thread: number; write: boolean; bytes: [number, number][]; place?: string }
export interface SharingEvent { line: string; writer: SharingSide; victim: SharingSide; count: number; false_sharing: boolean }
// What src/report/sharing.cpp says of a line. `gain`: moving data apart ends its misses.
export interface SharedLine { line: string; object: string; offset: number; count: number; false_count: number; verdict: string; gain: boolean; advice: string; events: SharingEvent[] }
export interface Thread { id: number; accesses: number; reuse: Histogram }
export interface Phase { begin: number; end: number; distinct: number; reuse: Histogram; sites: {site: number; reuse: Histogram}[] }
// What did not fit: how many, and all of them summed.
export interface Rest { number: number; weight: number; reuse: Histogram }

// What src/report/findings.cpp found: the same as `revisit report --json` writes and the terminal shows.
export interface Advice { rule: string; misses: number; share: number; gain: number; what: string; where?: string; gain_text?: string; help?: string[]; use?: number; reuse?: number }
export interface WorkingSet { blocks: number; size: string; miss_before: number; miss_after: number }
export interface Level { name: string; bytes: number; ways: number; line: number; hit_rate: number; miss_rate: number; error?: number; simulated?: boolean; sets?: string; model_miss_rate?: number; conflicts?: string; advice: Advice[] }
export interface Report {
  lead: string;
  few_samples?: boolean;
  most_stated_error: number;
  percentiles: [number, number][];
  working_sets: WorkingSet[];
  main_working_set?: WorkingSet;
  caches: Level[];
  left_out?: string;
  focus?: {name: string; bytes: number; ways: number; line: number};
  sites?: {id: number; place: string; misses: number; share: number; miss_rate: number; data?: string; member?: string; reason?: string; few_samples?: boolean}[];
  pages?: {bytes: number; touched: number; tlbs: {name: string; entries: number; ways: number; hit_rate: number; miss_rate: number}[]}[];
  typical_tlbs?: boolean;
  huge_pages?: string;
  line_use?: string;
  measured: [string, string][];
}

export interface Profile {
  label: string;
  report: Report;
  method: string;
  model: string;
  granularity: number;
  accesses: number;
  distinct: number;
  distinctRange: string;
  machine: string;
  clock: string;
  command: string[];
  notes: string[];
  sampled?: {period: number; samples: number; pruned: number};
  accessesError: string;  // "± 60 %"; empty: they were counted
  reuse: Histogram;
  time?: Histogram;
  shared?: Histogram;  // private model: what one stack for all threads would see
  sites: Site[];
  siteById: Map<number, Site>;
  contexts: Context[];
  pairs: Pair[];
  objects: DataObject[];
  threads: Thread[];
  phases: Phase[];
  sharing: SharingEvent[];
  sharedLines: SharedLine[];
  similarity?: number;  // S against the first profile, as `revisit diff` has it
  lineUse?: {cache: string; line: number};
  touches: {site: number; context: number; reuse: Histogram}[];  // first touches and invalidations by call path
  restSites: Rest;
  restPairs: Rest;
  restObjects: Rest;
  hasPairs: boolean;
  hasObjects: boolean;
  pairsOf: (site: number) => Pair[];  // that end there
  stretch?: {from: number; to: number; of: number};  // windows of the run that this is about
}

interface Packed {
  schema: string;
  caches: {name: string; bytes: number; ways: number; line: number}[];
  cachesAreHosts: boolean;
  strings: string[];
  edges: number[];
  profiles: any[];
  sources: [number, string][];
  listings?: [string, [number, string][]][];
}

export let edges: number[] = [];
export let profiles: Profile[] = [];
export let caches: Packed['caches'] = [];
export let cachesAreHosts = false;
export const sources = new Map<string, string[]>();
// Stretches of machine code by module.
export const listings = new Map<string, [number, string][][]>();

// Rows are unpacked when they are first looked at, so that the page opens at once.
function lazily<T extends object>(target: T, name: keyof T, make: () => unknown): void {
  Object.defineProperty(target, name, {configurable: true, enumerable: true, get() {
    const value = make();
    Object.defineProperty(target, name, {value, enumerable: true});
    return value;
  }});
}

export function load(text: string): void {
  const packed = JSON.parse(text) as Packed;
  const word = (index: number) => packed.strings[index] ?? '';
  const rest = (row?: [number, number, number[]]): Rest =>
    row ? {number: row[0], weight: row[1], reuse: new Histogram(row[2])} : {number: 0, weight: 0, reuse: new Histogram([0, 0])};
  const frame = (f: number[]) => ({function: word(f[0]!), file: word(f[1]!), line: f[2]!});
  edges = packed.edges;
  caches = packed.caches;
  cachesAreHosts = packed.cachesAreHosts;
  for (const [file, content] of packed.sources) sources.set(word(file), content.split('\n'));
  for (const [module, rows] of packed.listings ?? []) listings.set(module, [...listings.get(module) ?? [], rows]);
  profiles = packed.profiles.map(p => {
    const profile = {
      label: p.label, report: p.report, method: p.method, model: p.model, granularity: p.granularity, accesses: p.accesses,
      distinct: p.distinct, machine: p.machine, clock: p.clock, command: p.command, notes: p.notes, sampled: p.sampled, accessesError: p.accessesError ?? '', distinctRange: p.distinctRange ?? '',
      reuse: new Histogram(p.reuse, p.reuseError, p.reuseErrorBeyond), time: p.time ? new Histogram(p.time, p.timeError, p.timeErrorBeyond) : undefined, shared: p.shared ? new Histogram(p.shared) : undefined,
      restSites: rest(p.restSites), restPairs: rest(p.restPairs), restObjects: rest(p.restObjects),
      hasPairs: p.pairs.length > 0, hasObjects: p.objects.length > 0, sharing: p.sharing ?? [], lineUse: p.lineUse,
      similarity: p.similarity,
    } as Profile;
    const events = new Map<string, SharingEvent[]>();
    for (const event of profile.sharing) events.set(event.line, [...events.get(event.line) ?? [], event]);
    profile.sharedLines = (p.sharedLines ?? []).map((line: SharedLine) => ({...line, events: events.get(line.line) ?? []}));
    lazily(profile, 'sites', () => p.sites.map((r: any[]): Site => ({
      id: r[0], module: word(r[1]), offset: r[2], function: word(r[3]), file: word(r[4]), line: r[5], accesses: r[6],
      writes: r[7], reuse: new Histogram(r[8]),
      inlined: (r[9] ?? []).map(frame),
      loop: r[10] ? frame(r[10]) : undefined,
      data: r[11] === undefined ? '' : word(r[11]), timeShare: r[12] ?? -1, regular: r[13] ?? -1,
      fetches: r[14] ?? 0, usedBytes: r[15] ?? 0, usedError: r[16] ?? 0, member: r[17] === undefined ? '' : word(r[17]), memberOffset: r[18] ?? 0,
    })));
    lazily(profile, 'siteById', () => new Map(profile.sites.map(site => [site.id, site])));
    lazily(profile, 'contexts', () => p.contexts.map((r: number[]): Context =>
      ({parent: r[0]!, function: word(r[1]!), file: word(r[2]!), line: r[3]!, module: word(r[4]!), offset: r[5]!})));
    lazily(profile, 'pairs', () => p.pairs.map((r: any[], index: number): Pair =>
      ({index, use: r[0], reuse: r[1], useContext: r[2], reuseContext: r[3], count: r[4], distances: new Histogram(r[5]),
        shared: r[6] ?? 0, meet: r[7] === undefined ? '' : word(r[7])})));
    lazily(profile, 'objects', () => p.objects.map((r: any[]): DataObject =>
      ({kind: word(r[0]), name: word(r[1]), bytes: r[2], context: r[3], accesses: r[4], reuse: new Histogram(r[5]), fetches: r[6] ?? 0, usedBytes: r[7] ?? 0, usedError: r[8] ?? 0,
        type: r[9] === undefined ? '' : word(r[9]), typeBytes: r[10] ?? 0})));
    lazily(profile, 'touches', () => (p.touches ?? []).map((r: number[]) => ({site: r[0]!, context: r[1]!, reuse: new Histogram([r[2]!, r[3]!])})));
    lazily(profile, 'threads', () => p.threads.map((r: any[]): Thread => ({id: r[0], accesses: r[1], reuse: new Histogram(r[2])})));
    lazily(profile, 'phases', () => p.phases.map((r: any[]): Phase => ({begin: r[0], end: r[1], distinct: r[2], reuse: new Histogram(r[3]),
      sites: (r[4] ?? []).map((one: any[]) => ({site: one[0], reuse: new Histogram(one[1])}))})));
    let byReuse: Map<number, Pair[]> | null = null;
    profile.pairsOf = site => {
      if (!byReuse) {
        byReuse = new Map();
        for (const pair of profile.pairs) {
          const list = byReuse.get(pair.reuse);
          if (list) list.push(pair);
          else byReuse.set(pair.reuse, [pair]);
        }
      }
      return byReuse.get(site) ?? [];
    };
    return profile;
  });
}

export const lowOf = (edge: number) => edges[2 * edge]!;
export const highOf = (edge: number) => edges[2 * edge + 1]!;

// Powers of two: [0,1), [1,2), [2,4) … A bin that straddles an edge is spread by width.
export interface Octave { low: number; high: number; count: number; error: number }
export function octaves(histogram: Histogram): Octave[] {
  const slots = new Map<number, Octave>();
  for (let i = 0; i < histogram.bins; ++i) {
    const low = lowOf(histogram.edge(i)), high = highOf(histogram.edge(i)), width = high - low;
    for (let at = low; at < high;) {
      const power = at < 1 ? -1 : Math.floor(Math.log2(at));
      const from = power < 0 ? 0 : 2 ** power, to = power < 0 ? 1 : 2 ** (power + 1);
      const until = Math.min(to, high), share = (until - at) / width;
      const slot = slots.get(power) ?? {low: from, high: to, count: 0, error: 0};
      slot.count += histogram.count(i) * share;
      slot.error = Math.hypot(slot.error, histogram.error(i) * share);
      slots.set(power, slot);
      at = until;
    }
  }
  // What may lie in one bin or the next is no error of an octave that holds both. As Histogram::rebin.
  if (histogram.beyond)
    for (const slot of slots.values()) slot.error = Math.min(slot.error, Math.hypot(histogram.beyondError(slot.low), histogram.beyondError(slot.high)));
  return [...slots.values()].sort((a, b) => a.low - b.low);
}

export function percentile(histogram: Histogram, share: number): number {
  const finite = histogram.total - histogram.cold - histogram.invalidated;
  let seen = 0;
  for (let i = 0; i < histogram.bins; ++i) {
    const count = histogram.count(i);
    if (count > 0 && seen + count >= share * finite) {
      const inside = Math.max(0, Math.min(1, (share * finite - seen) / count));
      return lowOf(histogram.edge(i)) + inside * (highOf(histogram.edge(i)) - 1 - lowOf(histogram.edge(i)));
    }
    seen += count;
  }
  return 0;
}

// Of the whole run, as the terminal has it.
export const percentileOf = (profile: Profile, share: number) => profile.report.percentiles.find(([percentile]) => percentile === share)?.[1] ?? 0;

export function merged(histograms: Histogram[]): Histogram {
  const counts = new Map<number, number>();
  let cold = 0, invalidated = 0;
  for (const histogram of histograms) {
    cold += histogram.cold;
    invalidated += histogram.invalidated;
    for (let i = 0; i < histogram.bins; ++i) counts.set(histogram.edge(i), (counts.get(histogram.edge(i)) ?? 0) + histogram.count(i));
  }
  return new Histogram([cold, invalidated, ...[...counts].sort((a, b) => lowOf(a[0]) - lowOf(b[0])).flat()]);
}

// The profile of some windows of the run. What windows do not know (pairs, call paths, threads, time) is not in it.
let lastStretch: Profile | null = null, lastWhole: Profile | null = null;
export function stretchOf(whole: Profile, from: number, to: number): Profile {
  if (from < 0 || to < from || to >= whole.phases.length) return whole;
  if (lastStretch && lastWhole === whole && lastStretch.stretch!.from === from && lastStretch.stretch!.to === to) return lastStretch;
  const phases = whole.phases.slice(from, to + 1), byId = new Map<number, Histogram[]>();
  for (const phase of phases) for (const one of phase.sites) {
    const list = byId.get(one.site);
    if (list) list.push(one.reuse);
    else byId.set(one.site, [one.reuse]);
  }
  const reuse = merged(phases.map(phase => phase.reuse));
  const sites = whole.sites.filter(site => byId.has(site.id)).map((site): Site => {
    const here = merged(byId.get(site.id)!);
    return {...site, reuse: here, accesses: here.total, writes: site.writes * here.total / Math.max(1, site.accesses), timeShare: -1, fetches: 0, usedBytes: 0};
  });
  const byData = new Map<string, Histogram[]>();
  for (const site of sites) byData.set(site.data, [...byData.get(site.data) ?? [], site.reuse]);
  const objects = whole.objects.filter(object => byData.has(`${object.kind} ${object.name}`)).map((object): DataObject => {
    const here = merged(byData.get(`${object.kind} ${object.name}`)!);
    return {...object, reuse: here, accesses: here.total, fetches: 0, usedBytes: 0};
  });
  const none: Rest = {number: 0, weight: 0, reuse: new Histogram([0, 0])};
  lastWhole = whole;
  lastStretch = Object.create(whole, Object.getOwnPropertyDescriptors({
    reuse, sites, siteById: new Map(sites.map(site => [site.id, site])), objects, accesses: reuse.total, pairs: [], touches: [], threads: [], sharing: [], sharedLines: [],
    hasPairs: false, hasObjects: objects.length > 0, pairsOf: () => [], restSites: none, restPairs: none, restObjects: none, shared: undefined,
    time: undefined, lineUse: undefined, stretch: {from, to, of: whole.phases.length}})) as Profile;
  return lastStretch;
}

// The root first. `contexts[0]` is the root and is left out.
export function pathOf(profile: Profile, context: number): Context[] {
  const out: Context[] = [];
  for (let at = context; at > 0 && out.length < 1000; at = profile.contexts[at]!.parent) out.unshift(profile.contexts[at]!);
  return out;
}

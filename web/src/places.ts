// Sites gathered by line, loop, function, file or module, with the pairs and sources behind them.
import {HitTable} from './cache';
import {Histogram, merged, percentile, Profile, Site} from './data';
import {fileName} from './format';

export type By = 'line' | 'loop' | 'function' | 'file' | 'module' | 'site';
export const kBys: By[] = ['line', 'loop', 'function', 'file', 'module', 'site'];

export interface Place {
  key: string;
  name: string;
  detail: string;
  file: string;
  line: number;
  sites: Site[];
  accesses: number;
  writes: number;
  misses: number;
  missRate: number;
  timeShare: number;  // -1: not measured
  rank: number;       // misses, or misses × time where time was sampled: what matters first
  reuse: Histogram;
  fetches: number;
  usedBytes: number;
  usedError: number;
}

export const offsetOf = (site: {module: string; offset: number}) =>
  site.module ? `${fileName(site.module)}+0x${site.offset.toString(16)}` : '';

// Stripped frames are module+offset everywhere.
export const frameName = (frame: {function: string; module: string; offset: number}) => frame.function || offsetOf(frame) || '?';

export function siteName(site: Site | undefined, id: number): string {
  if (!site) return `site ${id}`;
  if (site.file) return `${fileName(site.file)}:${site.line}`;
  return site.function || offsetOf(site) || `site ${site.id}`;
}

export const keyOfLine = (site: Site) => `${site.file}\0${site.line}\0${site.file ? '' : siteName(site, site.id)}`;

function keyOf(site: Site, by: By): [string, string, string] {
  const here = siteName(site, site.id);
  switch (by) {
    case 'line': return [keyOfLine(site), here, site.file ? site.function : ''];
    case 'loop': {
      const loop = site.loop;
      if (!loop) return [`\0${site.function}\0${site.file}`, `outside loops in ${site.function || here}`, fileName(site.file || site.module)];
      return [`${loop.file}\0${loop.line}\0${loop.function}`, `loop at ${fileName(loop.file)}:${loop.line}`, loop.function];
    }
    case 'function': return [`${site.function}\0${site.file}`, site.function || here, fileName(site.file || site.module)];
    case 'file': return [site.file || site.module, fileName(site.file || site.module) || 'unknown', site.file];
    case 'module': return [site.module, fileName(site.module) || 'unknown', site.module];
    case 'site': return [String(site.id), here, `${site.function} ${offsetOf(site)}`.trim()];
  }
}

export function gather(profile: Profile, by: By): Place[] {
  const places = new Map<string, Place>();
  for (const site of profile.sites) {
    const [key, name, detail] = keyOf(site, by);
    const place = places.get(key);
    if (place) {
      place.sites.push(site);
      place.accesses += site.accesses;
      place.writes += site.writes;
      const fetches = Math.max(1e-300, place.fetches + site.fetches);
      place.usedError = Math.hypot(place.usedError * place.fetches, site.usedError * site.fetches) / fetches;
      place.fetches += site.fetches;
      place.usedBytes += site.usedBytes;
      if (site.timeShare >= 0) place.timeShare = Math.max(0, place.timeShare) + site.timeShare;
    } else {
      places.set(key, {key, name, detail, file: site.file, line: site.line, sites: [site], accesses: site.accesses,
                       writes: site.writes, misses: 0, missRate: 0, timeShare: site.timeShare, rank: 0, reuse: site.reuse,
                       fetches: site.fetches, usedBytes: site.usedBytes, usedError: site.usedError});
    }
  }
  for (const place of places.values()) if (place.sites.length > 1) place.reuse = merged(place.sites.map(site => site.reuse));
  return [...places.values()];
}

export function weigh(places: Place[], table: HitTable): number {
  const timed = places.some(place => place.timeShare >= 0);
  let all = 0;
  for (const place of places) {
    place.misses = table.misses(place.reuse);
    place.missRate = place.reuse.total > 0 ? place.misses / place.reuse.total : 0;
    place.rank = timed ? place.misses * Math.max(place.timeShare, 1e-9) : place.misses;
    all += place.misses;
  }
  return all;
}

// Bytes of each line that are used before it leaves the cache the profile counted them in.
export const usedPerLine = (of: {fetches: number; usedBytes: number}) => of.fetches > 0 ? of.usedBytes / of.fetches : 0;
export const lineUseText = (profile: Profile, of: {fetches: number; usedBytes: number; usedError?: number}) =>
  profile.lineUse && of.fetches > 0 ? `${Number(usedPerLine(of).toPrecision(2))}${of.usedError ? ` ± ${of.usedError.toFixed(of.usedError < 1 ? 1 : 0)}` : ''} of ${profile.lineUse.line} B` : '–';

export const median = (histogram: Histogram) => Math.round(percentile(histogram, 0.5));

// A part of a sampled profile with fewer samples than this has an error of over half of it (words.h).
export const tooFewSamples = (profile: Profile, count: number) =>
  !!profile.sampled && profile.sampled.period > 0 && 1.96 * Math.sqrt(count / profile.sampled.period) > count / profile.sampled.period / 2;

// "matmul a.c" finds places that have both words somewhere in module, file, function or line.
export function matches(site: Site, filter: string): boolean {
  if (!filter) return true;
  const text = `${site.module} ${site.file}:${site.line} ${site.function} ${site.inlined.map(f => f.function).join(' ')}${site.loop ? ` loop ${site.loop.file}:${site.loop.line}` : ''} ${site.data}`.toLowerCase();
  return filter.toLowerCase().split(/\s+/).every(word => text.includes(word));
}

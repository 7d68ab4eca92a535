// The worst of it in plain words: what happens, with the figures, and what usually helps.
//
// Findings are ranked by the misses they explain in the chosen cache. A rule speaks only of what the
// profile shows: who used the block before, who came back, how much was touched in between, and where
// the call paths part.
import {HitTable} from './cache';
import {DataObject, Pair, pathOf, Profile, profiles} from './data';
import {Child, h, replace} from './dom';
import {bytes, count, fileName, percent, span} from './format';
import {cacheWords, knees} from './overview';
import {controls} from './controls';
import {commonFrames, median, siteName} from './places';
import {change, chosenCache, onChange, view} from './state';

interface Finding { misses: number; title: Child; what: Child; help: string[]; pick?: string }

const kMost = 12, kWorth = 0.01;

function samePlace(profile: Profile, pair: Pair): 'site' | 'line' | 'function' | 'apart' {
  if (pair.use === pair.reuse) return 'site';
  const use = profile.siteById.get(pair.use), reuse = profile.siteById.get(pair.reuse);
  if (!use || !reuse) return 'apart';
  if (use.file && use.file === reuse.file && use.line === reuse.line) return 'line';
  return use.function && use.function === reuse.function && use.file === reuse.file ? 'function' : 'apart';
}

function pairFinding(profile: Profile, pair: Pair, misses: number, capacity: number): Finding {
  const use = profile.siteById.get(pair.use), reuse = profile.siteById.get(pair.reuse);
  const here = siteName(reuse, pair.reuse), there = siteName(use, pair.use);
  const far = median(pair.distances) * profile.granularity;
  const amount = profile.granularity === 1 ? `${count(median(pair.distances))} other blocks` : `${bytes(far)} of other data`;
  const ratio = far / Math.max(1, capacity);
  const distance = [`half of these reuses come after ${amount} and more were touched`, ratio > 1 ? `, ${ratio < 10 ? ratio.toFixed(1) : Math.round(ratio)} times what the cache holds` : ''];
  const common = pathOf(profile, pair.reuseContext)[commonFrames(profile, pair) - 1];
  const pick = reuse ? `${reuse.file}\0${reuse.line}\0${reuse.file ? '' : here}` : undefined;
  const name = (text: string) => h('span', {class: 'name'}, text);
  const data = reuse?.data ? [' The data: ', name(reuse.data), '.'] : '';
  const loop = reuse?.loop?.line ? `, in the loop at ${fileName(reuse.loop.file)}:${reuse.loop.line}` : '';
  switch (samePlace(profile, pair)) {
    case 'site':
    case 'line':
      return {misses, pick, title: [name(here), ' comes back too late for its own data'],
        what: [`The same line uses a block again: `, distance, '. A loop around it sweeps more than fits before it returns.', data,
          reuse?.function ? [' Both uses are in ', name(reuse.function), loop, '.'] : ''],
        help: ['Tile the loops so that a part that fits is used up before the next one is begun.',
               'Interchange loops, or transpose the data, so that the innermost one walks along memory.',
               ratio > 1 && ratio < 4 ? 'It does not miss by much: smaller types or a denser layout may be enough.' : 'If every pass does independent work, do several passes at once.']};
    case 'function':
      return {misses, pick, title: [name(there), ' → ', name(here), ': used again further down the same function'],
        what: [`In ${reuse!.function}, what line ${use!.line} touched is wanted again at line ${reuse!.line}${loop}: `, distance, '.', data],
        help: ['Fuse the two loops, so that the second use follows the first while the block is still there.',
               'Or run both over one piece that fits at a time.']};
    default:
      return {misses, pick, title: [name(there), ' → ', name(here), ': handed on through memory'],
        what: [`What ${use?.function || there} touched last, ${reuse?.function || here} wants again: `, distance, '.', data, ' ',
          common ? [`The two meet in `, name(common.function || fileName(common.module)), common.file ? ` (${fileName(common.file)}:${common.line})` : '', '.'] : ''],
        help: [common?.function ? `Change the order of work in ${common.function}: let the second step follow piece by piece.` : 'Let the second step follow the first piece by piece instead of after all of it.',
               'If the data is only passed on, compute it where it is used.']};
  }
}

function objectFinding(object: DataObject, misses: number): Finding {
  const rate = misses / Math.max(1, object.reuse.total);
  return {misses, title: [h('span', {class: 'name'}, object.name || object.kind), ' is larger than the cache'],
    what: `${bytes(object.bytes)} of ${object.kind} data, ${percent(rate, 1)} of whose ${count(object.accesses)} accesses miss.`,
    help: rate > 0.5 ? ['Most accesses miss: each fetched line is hardly used. Lay out together what is used together (hot fields apart from cold, arrays of structures or structures of arrays).',
                        'If accesses are scattered, sort or bucket them first.']
      : ['Use smaller types or indices instead of pointers.', 'Work on a part that fits at a time.']};
}

// Pairs that differ only in their contexts say the same; the worst of them speaks for all.
function groups(profile: Profile): Pair[][] {
  const byUse = new Map<number, Map<number, Pair[]>>();
  for (const pair of profile.pairs) {
    let byReuse = byUse.get(pair.use);
    if (!byReuse) byUse.set(pair.use, byReuse = new Map());
    const list = byReuse.get(pair.reuse);
    if (list) list.push(pair);
    else byReuse.set(pair.reuse, [pair]);
  }
  return [...byUse.values()].flatMap(byReuse => [...byReuse.values()]);
}

function findings(profile: Profile, together: Pair[][], hits: HitTable): {list: Finding[]; all: number} {
  // Words are found only for those that are shown.
  const cache = hits.cache, list: {misses: number; tell: () => Finding}[] = [];
  const all = hits.misses(profile.reuse);
  const worth = kWorth * all;
  for (const group of together) {
    let worst = group[0]!, most = -1, misses = 0;
    for (const pair of group) {
      const one = hits.misses(pair.distances);
      misses += one;
      if (one > most) { worst = pair; most = one; }
    }
    if (misses > worth) list.push({misses, tell: () => pairFinding(profile, worst, misses, cache.bytes)});
  }
  for (const object of profile.objects) {
    const misses = hits.misses(object.reuse);
    if (misses > worth && object.bytes > cache.bytes) list.push({misses, tell: () => objectFinding(object, misses)});
  }
  if (profile.reuse.cold > worth) {
    let site = profile.sites[0];
    for (const one of profile.sites) if (one.reuse.cold > site!.reuse.cold) site = one;
    const finding: Finding = {misses: profile.reuse.cold, title: 'Memory touched for the first time',
      what: [`${percent(profile.reuse.cold / profile.reuse.total)} of accesses are first touches; no cache helps there.`,
        site && site.reuse.cold > 0 ? [' Most at ', h('span', {class: 'name'}, siteName(site, site.id)), '.'] : ''],
      help: ['Touch less: reuse buffers instead of allocating new ones, read only what is needed.', 'Walk in order, so that the prefetcher sees it coming.']};
    list.push({misses: finding.misses, tell: () => finding});
  }
  if (profile.reuse.invalidated > worth)
    list.push({misses: profile.reuse.invalidated, tell: () => ({misses: profile.reuse.invalidated, title: 'Blocks taken away by other threads',
      what: `${count(profile.reuse.invalidated)} reuses found that another thread had written to the block since.`,
      help: ['Pad what different threads write to so that no two share a line (false sharing).', 'Let each thread add up privately and combine at the end.']})});
  for (const knee of knees(profile.reuse)) {
    const size = knee.blocks * profile.granularity;
    if (size > cache.bytes && size <= 4 * cache.bytes)
      list.push({misses: (knee.before - knee.after) * profile.reuse.total, tell: () => ({misses: (knee.before - knee.after) * profile.reuse.total, title: `A working set of ${span(knee.blocks, profile.granularity)} just does not fit`,
        what: `A cache that held it would bring misses from ${percent(knee.before)} to ${percent(knee.after)}; this one has ${bytes(cache.bytes)}.`,
        help: ['Shrink it: smaller types, fewer fields, tiles of two thirds of the cache.']})});
  }
  return {list: list.sort((a, b) => b.misses - a.misses).slice(0, kMost).map(entry => entry.tell()), all};
}

export function advice(): HTMLElement {
  const profile = profiles[view.profile]!;
  const box = h('div', {}), together = groups(profile);
  const update = () => {
    const cache = chosenCache(), {list, all} = findings(profile, together, new HitTable(cache));
    replace(box,
      h('p', {class: 'quiet'}, `For a cache of ${cacheWords(cache)}: ${count(all)} misses, ${percent(all / Math.max(1, profile.reuse.total))} of accesses. Findings may overlap: a pair and the data it goes through count the same misses.`),
      !profile.hasPairs ? h('p', {}, 'This profile has no use → reuse pairs, so advice stays general.') : null,
      list.length ? h('ol', {class: 'findings'}, list.map(finding => h('li', {class: 'card'},
        h('h3', {}, finding.title),
        h('p', {class: 'cost'}, h('span', {class: 'meter', style: `--share:${Math.min(100, 100 * finding.misses / Math.max(1, all))}%`}),
          `${count(finding.misses)} misses, ${percent(Math.min(1, finding.misses / Math.max(1, all)), 1)} of all`),
        h('p', {}, finding.what),
        h('p', {class: 'helps'}, 'What usually helps'),
        h('ul', {}, finding.help.map(help => h('li', {}, help))),
        finding.pick !== undefined && h('button', {type: 'button', onclick: () => change({tab: 'code', by: 'line', filter: '', pick: finding.pick!})}, 'Show the code'))))
        : h('p', {}, 'Nothing stands out: no pair, object or working set explains a hundredth of the misses.'));
  };
  update();
  onChange(what => { if (what === 'cache') update(); });
  return h('div', {}, h('div', {class: 'card toolbar'}, controls()), box);
}

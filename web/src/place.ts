// All that is known about one place: misses in each cache, time, distances, the pairs behind it with both call paths,
// the data it touches.
import {HitTable} from './cache';
import {Context, listings, Pair, pathOf, percentile, Profile, sources} from './data';
import {Child, h, replace} from './dom';
import {bytes, count, fileName, percent, span} from './format';
import {codeLink, dataLink, editorLink, link, toSource} from './links';
import {histogramCard} from './overview';
import {frameName, lineUseText, median, Place, siteName, tooFewSamples, usedPerLine} from './places';
import {excerpt, lineText} from './source';
import {change, comparable, view} from './state';
import {table} from './table';

export const noPlace = () => h('p', {class: 'quiet'}, 'No place matches the filter.');

// Misses in each marked cache, and in the chosen one.
export function byLevel(reuse: Place['reuse'], hits: HitTable): HTMLElement {
  const known = comparable(), marked = known.some(cache => cache.bytes === hits.cache.bytes && cache.ways === hits.cache.ways);
  const rows = known.map(cache => ({name: cache.name, size: bytes(cache.bytes), misses: new HitTable(cache).misses(reuse)}));
  if (!marked) rows.push({name: 'chosen', size: bytes(hits.cache.bytes), misses: hits.misses(reuse)});
  const total = Math.max(1, reuse.total);
  return h('table', {class: 'rates'}, h('caption', {class: 'unseen'}, 'Misses by cache'),
    h('thead', {}, h('tr', {}, ['cache', 'size', 'misses', 'miss rate'].map(title => h('th', {scope: 'col'}, title)))),
    h('tbody', {}, rows.map(row => h('tr', {}, h('th', {scope: 'row'}, row.name), h('td', {}, row.size), h('td', {}, count(row.misses)),
      h('td', {class: 'bar', style: `--share:${100 * row.misses / total}%`}, percent(row.misses / total, 1))))));
}

// ThreadSpotter's fetch utilization.
export function lineUse(profile: Profile, of: {fetches: number; usedBytes: number; usedError?: number}): Child {
  if (!profile.lineUse || of.fetches <= 0) return null;
  const share = usedPerLine(of) / profile.lineUse.line;
  return h('p', {}, 'Line use: ', h('b', {}, lineUseText(profile, of)), ` (${percent(share, 0)}) of each of the ${count(of.fetches)} lines fetched are used before they leave a cache of ${profile.lineUse.cache}.`);
}

function kinds(place: Place, hits: HitTable): Child {
  const capacity = Math.max(0, place.misses - place.reuse.cold - place.reuse.invalidated), all = Math.max(1e-300, place.misses);
  const parts = [['evicted before reuse', capacity, 'var(--c2)'], ['first touches', place.reuse.cold, 'var(--infinite)'],
                 ['invalidated', place.reuse.invalidated, 'var(--c4)']] as const;
  if (place.misses <= 0) return h('p', {class: 'quiet'}, `Nothing misses here in ${bytes(hits.cache.bytes)}.`);
  return [h('div', {class: 'stack', 'aria-hidden': 'true'}, parts.map(([, part, color]) => h('span', {style: `width:${100 * part / all}%;background:${color}`}))),
    h('ul', {class: 'legend'}, parts.filter(([, part]) => part > 0).map(([name, part, color]) =>
      h('li', {}, h('span', {class: 'swatch', style: `background:${color}`}), `${name} ${percent(part / all, 1)}`)))];
}

export function placePane(profile: Profile, place: Place, hits: HitTable): HTMLElement {
  const ids = new Set(place.sites.map(site => site.id));
  const all = [...new Set(place.sites.flatMap(site => profile.pairsOf(site.id)))];
  const inlined = place.sites.find(site => site.inlined.length)?.inlined ?? [];
  const data = [...new Set(place.sites.map(site => site.data).filter(name => name))];
  const members = [...new Set(place.sites.map(site => site.member).filter(name => name))].slice(0, 6);
  const regular = place.sites.filter(site => site.regular >= 0);
  const single = place.sites.every(site => site.file === place.file && site.line === place.line);
  return h('div', {},
    h('h3', {}, h('span', {class: 'name'}, place.name), place.detail ? h('span', {class: 'quiet'}, ' ' + place.detail) : ''),
    h('p', {class: 'quiet'}, single && place.file ? [editorLink(place.file, place.line), ' '] : '',
      single && place.file && sources.has(place.file) && view.pane !== 'source' ? link('show the code', toSource(place.sites[0]!)) : ''),
    tooFewSamples(profile, place.misses) && place.misses > 0 ? h('p', {class: 'warning'}, 'Too few samples here: read nothing into these figures.') : null,
    h('p', {}, `${count(place.accesses)} accesses`, place.writes ? `, ${percent(place.writes / Math.max(1, place.accesses), 0)} writes` : '',
      place.timeShare >= 0 ? [', ', h('b', {}, percent(place.timeShare, 1)), ' of the processor time'] : '',
      regular.length ? `, ${percent(regular.reduce((sum, site) => sum + site.regular * site.accesses, 0) / Math.max(1, regular.reduce((sum, site) => sum + site.accesses, 0)), 0)} of misses on a constant stride (prefetchers hide them)` : '', '.'),
    byLevel(place.reuse, hits), kinds(place, hits), lineUse(profile, place),
    data.length ? h('p', {}, 'Data: ', data.slice(0, 6).map((name, i) => [i ? ', ' : '', dataLink(profile, name)]),
      members.length ? [', member ', members.map((name, i) => [i ? ', ' : '', h('code', {class: 'name'}, name)])] : '') : null,
    why(profile, place, ids, all, hits),
    single && view.pane !== 'source' ? excerpt(place.file, place.line) : null,
    disassembly(profile, place, hits),
    inlined.length ? h('p', {class: 'quiet'}, 'Inlined into ', inlined.map(frame => `${frame.function || '?'} (${fileName(frame.file)}:${frame.line})`).join(', into ')) : null,
    place.reuse.bins ? h('p', {}, `Half the reuses within ${span(median(place.reuse), profile.granularity)}, nine in ten within ${span(Math.round(percentile(place.reuse, 0.9)), profile.granularity)}.`) : null,
    histogramCard('Reuse distances here', 'Memory touched between two uses of a block.', place.reuse, profile.granularity, 'place-distances', 170));
}

// The instructions around a place with their misses, the source line before those that have one.
const kAround = 24;
function disassembly(profile: Profile, place: Place, hits: HitTable): Child {
  const wanted = new Map(place.sites.map(site => [site.offset, site]));
  const parts = place.sites.flatMap(site => listings.get(site.module) ?? []).filter((rows, i, all) =>
    all.indexOf(rows) === i && rows.some(([address]) => wanted.has(address)));
  if (!parts.length) return null;
  const module = place.sites[0]!.module;
  const known = new Map(profile.sites.filter(site => site.module === module).map(site => [site.offset, site]));
  const details = h('details', {class: 'behind'}, h('summary', {}, 'Disassembly'));
  details.addEventListener('toggle', () => {
    if (details.childElementCount > 1) return;
    const most = Math.max(1, ...place.sites.map(site => hits.misses(site.reuse)));
    for (const rows of parts) {
      const first = rows.findIndex(([address]) => wanted.has(address));
      let last = first;
      rows.forEach(([address], i) => { if (wanted.has(address)) last = i; });
      let line = '';
      const body = rows.slice(Math.max(0, first - kAround), last + kAround + 1).flatMap(([address, text]) => {
        const site = known.get(address), misses = site ? hits.misses(site.reuse) : 0, at = site?.file ? siteName(site, site.id) : '';
        const out = [h('tr', {class: wanted.has(address) ? 'picked' : ''}, h('td', {class: 'number'}, address.toString(16)),
          h('td', {class: 'bar', style: `--share:${Math.min(100, 100 * misses / most)}%`}, misses >= 0.5 ? count(misses) : ''), h('td', {class: 'text'}, text))];
        if (at && at !== line) out.unshift(h('tr', {}, h('td', {}), h('td', {}), h('td', {class: 'text quiet'}, `${(line = at)}  ${lineText(site!.file, site!.line)}`)));
        return out;
      });
      details.append(h('div', {class: 'source', tabindex: 0, role: 'region', 'aria-label': 'Disassembly'}, h('table', {}, h('thead', {}, h('tr', {}, ['address', 'misses', fileName(module)].map(title => h('th', {scope: 'col'}, title)))), h('tbody', {}, body))));
    }
  });
  return details;
}

// The pairs behind a place, the worst one open.
function why(profile: Profile, place: Place, ids: Set<number>, all: Pair[], hits: HitTable): Child {
  const pairs = all.filter(pair => ids.has(pair.reuse));
  if (!pairs.length) return null;
  const name = (id: number) => siteName(profile.siteById.get(id), id);
  const misses = (pair: Pair) => hits.misses(pair.distances);
  const some = pairs.filter(pair => misses(pair) >= 0.5 || pair.index === view.pair);
  const box = h('div', {});
  const draw = () => {
    const worst = pairs.reduce((best, pair) => misses(pair) > misses(best) ? pair : best, pairs[0]!);
    const open = pairs.find(pair => pair.index === view.pair) ?? worst;
    replace(box, h('h4', {}, 'Why: who used the data before'),
      table<Pair>([
        {title: 'last used by', wide: true, value: pair => name(pair.use),
         show: pair => [h('span', {class: 'name'}, ids.has(pair.use) && place.sites.length === 1 ? 'the same instruction' : name(pair.use)),
                        h('span', {class: 'quiet'}, ' ' + (profile.siteById.get(pair.use)?.function ?? ''))]},
        {title: 'misses', value: misses, show: pair => count(misses(pair)), bar: pair => misses(pair) / Math.max(1, place.misses)},
        {title: 'distance', title_: 'Median distance of the reuses that miss', value: pair => median(hits.missed(pair.distances)) * profile.granularity,
         show: pair => misses(pair) >= 0.5 ? span(median(hits.missed(pair.distances)), profile.granularity) : '–'},
        {title: 'meet in', wide: true, value: pair => pair.meet},
      ], some.length ? some : pairs, {name: 'pairs', caption: `Pairs of use and reuse at ${place.name}`, sort: 1, rowsPerPage: 5,
                 onPick: pair => { change({pair: pair.index}, 'pick'); }, picked: pair => pair === open}),
      paths(profile, open));
  };
  draw();
  return box;
}

function paths(profile: Profile, pair: Pair): Child {
  const use = pathOf(profile, pair.useContext), reuse = pathOf(profile, pair.reuseContext);
  const show = (frame: Context) => h('li', {}, h('span', {class: 'name'}, frameName(frame)),
    frame.file ? h('span', {class: 'quiet'}, ` ${fileName(frame.file)}:${frame.line}`) : '');
  const end = (id: number) => {
    const site = profile.siteById.get(id);
    return h('li', {class: 'end'}, codeLink(profile, id, [h('span', {class: 'name'}, site?.function || ''), ` ${siteName(site, id)}`]));
  };
  return h('div', {class: 'paths'},
    pair.meet ? h('p', {}, 'The two meet in ', h('b', {class: 'name'}, pair.meet), '.') : null,
    use.length + reuse.length === 0 ? h('p', {class: 'quiet'}, 'No call paths were recorded for this pair.') : null,
    pair.shared > 0 && h('div', {class: 'shared'}, h('h4', {}, 'Both are called from'), h('ol', {}, use.slice(0, pair.shared).map(show))),
    h('div', {class: 'two'},
      h('div', {}, h('h4', {}, 'Use'), h('ol', {}, use.slice(pair.shared).map(show), end(pair.use))),
      h('div', {}, h('h4', {}, 'Reuse'), h('ol', {}, reuse.slice(pair.shared).map(show), end(pair.reuse)))));
}

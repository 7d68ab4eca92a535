// Where in the code: places by misses in the chosen cache, the source and the pairs behind one, call paths.
import {HitTable} from './cache';
import {Context, Pair, pathOf, percentile, Profile, profiles, sources} from './data';
import {Child, h, replace} from './dom';
import {count, fileName, percent, span} from './format';
import {cacheWords, histogramCard} from './overview';
import {controls} from './controls';
import {flame, Tree, treeOf} from './flame';
import {By, commonFrames, gather, kBys, matches, median, Place, siteName, weigh} from './places';
import {change, chosenCache, onChange, view} from './state';
import {table} from './table';

let openPair: Pair | null = null;

export function code(): HTMLElement {
  const profile = profiles[view.profile]!;
  if (profile.sites.length === 0)
    return h('div', {class: 'card'}, h('h3', {}, 'No places in this profile'),
      h('p', {}, 'It was made from addresses alone. Profile the program itself with ', h('code', {}, 'revisit profile -- PROGRAM'),
        ', or a trace that names its sites with ', h('code', {}, 'revisit analyze --sites --pairs'), '.'));
  openPair = null;
  const by = (kBys.includes(view.by as By) ? view.by : 'line') as By;
  const filtered = view.filter ? {...profile, sites: profile.sites.filter(site => matches(site, view.filter))} : profile;
  const places = gather(filtered, by);
  let shape: Tree | null = null, resting = 0;
  const list = h('div', {}), detail = h('div', {id: 'detail'}), tree = h('div', {}), summary = h('p', {class: 'quiet'});

  const update = () => {
    const cache = chosenCache(), hits = new HitTable(cache);
    const all = weigh(places, hits);
    const whole = profile.sites.length === filtered.sites.length ? all : profile.sites.reduce((sum, site) => sum + hits.misses(site.reuse), 0);
    replace(summary, `Misses in a cache of ${cacheWords(cache)}: ${count(all)}`,
      whole > all ? ` of ${count(whole)} in all` : '', '.');
    const rest = profile.restSites;
    replace(list, table<Place>([
      {title: by, value: place => by === 'line' || by === 'site' ? `${place.file || place.name}${place.file ? ':' + place.line : ''}` : place.name, wide: true,
       show: place => [h('span', {class: 'name'}, place.name), place.detail ? h('span', {class: 'quiet'}, ' ' + place.detail) : '']},
      {title: 'misses', value: place => place.misses, show: place => count(place.misses), bar: place => all > 0 ? place.misses / all : 0},
      {title: 'share', value: place => all > 0 ? place.misses / all : 0, show: place => percent(all > 0 ? place.misses / all : 0, 1)},
      {title: 'miss rate', value: place => place.missRate, show: place => percent(place.missRate, 1)},
      {title: 'accesses', value: place => place.accesses, show: place => count(place.accesses)},
      {title: 'median', title_: 'Half the reuses come back within this distance', value: place => median(place.reuse) * profile.granularity,
       show: place => place.reuse.bins ? span(median(place.reuse), profile.granularity) : '–'},
    ], places, {
      name: `places-by-${by}`, caption: `Misses by ${by}`, sort: 1, rowsPerPage: 15,
      onPick: place => { openPair = null; change({pick: place.key === view.pick ? '' : place.key}, 'cache'); },
      picked: place => place.key === view.pick,
      note: rest.number > 0 ? `${count(rest.number)} more sites with ${count(hits.misses(rest.reuse))} misses did not fit in` : '',
    }));
    const picked = places.find(place => place.key === view.pick);
    replace(detail, picked ? placeDetail(profile, picked, hits, update) : null);
    // The graph is large; it follows when the slider rests.
    clearTimeout(resting);
    resting = window.setTimeout(() => replace(tree, flame(shape ??= treeOf(profile, filtered.sites), hits)), tree.childElementCount ? 150 : 0);
  };
  update();
  onChange(what => { if (what === 'cache') update(); });

  let typing = 0;
  return h('div', {},
    h('div', {class: 'card toolbar'}, controls(),
      h('div', {class: 'filters'},
        h('label', {}, 'Filter ', h('input', {type: 'search', value: view.filter, placeholder: 'module, file, function, loop, line', 'data-filter': '',
          oninput: (event: any) => {
            clearTimeout(typing);
            typing = window.setTimeout(() => change({filter: event.target.value.trim()}), 200);
          }})),
        h('div', {class: 'segments', role: 'group', 'aria-label': 'Gather by'}, kBys.map(name =>
          h('button', {type: 'button', 'aria-pressed': String(name === by), onclick: () => change({by: name, pick: ''})}, name))))),
    h('section', {class: 'card'}, h('h3', {}, `Misses by ${by}`), summary, list),
    detail,
    h('section', {class: 'card'}, h('h3', {}, 'Flame graph of misses'), tree));
}

function placeDetail(profile: Profile, place: Place, hits: HitTable, redraw: () => void): HTMLElement {
  const ids = new Set(place.sites.map(site => site.id));
  const pairs = profile.pairs.filter(pair => ids.has(pair.reuse) || ids.has(pair.use));
  const name = (id: number) => siteName(profile.siteById.get(id), id);
  const inlined = place.sites.find(site => site.inlined.length)?.inlined ?? [];
  return h('section', {class: 'card detail', 'aria-label': `Details of ${place.name}`},
    h('h3', {}, place.name, h('span', {class: 'quiet'}, ' ' + place.detail)),
    h('p', {}, `${count(place.accesses)} accesses`, place.writes ? `, ${percent(place.writes / Math.max(1, place.accesses), 0)} of them writes` : '',
      `; ${percent(place.missRate)} miss. Half the reuses within ${span(median(place.reuse), profile.granularity)}, `,
      `nine in ten within ${span(Math.round(percentile(place.reuse, 0.9)), profile.granularity)}.`),
    inlined.length ? h('p', {class: 'quiet'}, 'Inlined into ', inlined.map(frame => `${frame.function || '?'} (${fileName(frame.file)}:${frame.line})`).join(', into ')) : null,
    source(profile, place, hits),
    histogramCard('Reuse distances here', 'Of the accesses made at this place.', place.reuse, profile.granularity, 'place-distances'),
    pairs.length ? [h('h4', {}, 'Use → reuse pairs'),
      h('p', {class: 'quiet'}, 'Who touched the block before, and who came back for it. Pick one to see both call paths.'),
      table<Pair>([
        {title: 'use → reuse', wide: true, value: pair => `${name(pair.use)} → ${name(pair.reuse)}`,
         show: pair => [h('span', {class: 'name'}, name(pair.use)), ' → ', h('span', {class: 'name'}, name(pair.reuse))]},
        {title: 'misses', value: pair => hits.misses(pair.distances), show: pair => count(hits.misses(pair.distances)),
         bar: pair => hits.misses(pair.distances) / Math.max(1, place.misses)},
        {title: 'reuses', value: pair => pair.count, show: pair => count(pair.count)},
        {title: 'median', value: pair => median(pair.distances) * profile.granularity, show: pair => span(median(pair.distances), profile.granularity)},
        {title: 'meet in', wide: true, value: pair => meet(profile, pair), show: pair => meet(profile, pair)},
      ], pairs, {name: 'pairs', caption: `Pairs at ${place.name}`, sort: 1, rowsPerPage: 8,
                 onPick: pair => { openPair = openPair === pair ? null : pair; redraw(); }, picked: pair => pair === openPair}),
      openPair ? paths(profile, openPair) : null] : null);
}

function meet(profile: Profile, pair: Pair): string {
  const shared = commonFrames(profile, pair);
  if (shared === 0) return '';
  const frame = pathOf(profile, pair.reuseContext)[shared - 1]!;
  return frame.function || fileName(frame.module);
}

export function paths(profile: Profile, pair: Pair): Child {
  const use = pathOf(profile, pair.useContext), reuse = pathOf(profile, pair.reuseContext);
  if (use.length + reuse.length === 0) return h('p', {class: 'quiet'}, 'No call paths were recorded for this pair.');
  const shared = commonFrames(profile, pair);
  const show = (frame: Context) => h('li', {}, h('span', {class: 'name'}, frame.function || fileName(frame.module) || '?'),
    frame.file ? h('span', {class: 'quiet'}, ` ${fileName(frame.file)}:${frame.line}`) : '');
  const end = (id: number) => {
    const site = profile.siteById.get(id);
    return h('li', {class: 'end'}, h('span', {class: 'name'}, site?.function || ''), ` ${siteName(site, id)}`);
  };
  return h('div', {class: 'paths'},
    shared > 0 && h('div', {class: 'shared'}, h('h4', {}, 'Both are called from'), h('ol', {}, use.slice(0, shared).map(show))),
    h('div', {class: 'two'},
      h('div', {}, h('h4', {}, 'Use'), h('ol', {}, use.slice(shared).map(show), end(pair.use))),
      h('div', {}, h('h4', {}, 'Reuse'), h('ol', {}, reuse.slice(shared).map(show), end(pair.reuse)))));
}

// The lines around a place with what each costs, or the whole file in a box that scrolls.
function source(profile: Profile, place: Place, hits: HitTable): Child {
  const lines = sources.get(place.file);
  if (!place.file) return null;
  if (!lines) return h('p', {class: 'quiet'}, 'The source is not in this page; ', h('code', {}, 'revisit report --sources'), ' takes it along.');
  const cost = new Map<number, {misses: number; accesses: number; far: number}>();
  let most = 0;
  for (const site of profile.sites) {
    if (site.file !== place.file) continue;
    const entry = cost.get(site.line) ?? {misses: 0, accesses: 0, far: 0};
    entry.misses += hits.misses(site.reuse);
    entry.accesses += site.accesses;
    entry.far = Math.max(entry.far, median(site.reuse));
    cost.set(site.line, entry);
    most = Math.max(most, entry.misses);
  }
  const rows = lines.map((text, i) => {
    const entry = cost.get(i + 1);
    return h('tr', {class: i + 1 === place.line ? 'picked' : null, 'data-line': i + 1},
      h('td', {class: 'number'}, i + 1),
      h('td', {class: 'figure bar', style: `--share:${entry && most ? 100 * entry.misses / most : 0}%`}, entry ? count(Math.round(entry.misses)) : ''),
      h('td', {class: 'figure'}, entry ? span(entry.far, profile.granularity) : ''),
      h('td', {class: 'text'}, text));
  });
  const box = h('div', {class: 'source', tabindex: 0, role: 'region', 'aria-label': `Source of ${place.file}`},
    h('table', {}, h('thead', {}, h('tr', {}, ['line', 'misses', 'median', fileName(place.file)].map(title => h('th', {scope: 'col'}, title)))),
      h('tbody', {}, rows)));
  requestAnimationFrame(() => {
    const target = rows[place.line - 1];
    if (target) box.scrollTop = Math.max(0, target.offsetTop - 120);
  });
  return box;
}

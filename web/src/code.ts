// Where in the code: one place, seen three ways. The list, the source or the flame graph on the left choose it; what
// is known about it stands on the right and stays in view.
import {HitTable} from './cache';
import {Profile, sources} from './data';
import {Child, h, replace} from './dom';
import {count, percent, span} from './format';
import {compactControls} from './controls';
import {flame, Tree, treeOf} from './flame';
import {noPlace, placePane} from './place';
import {By, gather, kBys, keyOfLine, lineUseText, matches, median, Place, tooFewSamples, usedPerLine, weigh} from './places';
import {sourcePane} from './source';
import {change, chosenCache, current, onChange, view} from './state';
import {table} from './table';

const kPanes = [['list', 'List'], ['source', 'Source'], ['flame', 'Flame graph']] as const;

// Two panes side by side, each with its own scroll; below 900 pixels one above the other.
export function split(left: Child, right: Child): HTMLElement {
  return h('div', {class: 'split'}, h('section', {class: 'card left'}, left),
    h('section', {class: 'card right', 'aria-label': 'The chosen place', tabindex: 0}, right));
}

export function filterBox(placeholder: string): HTMLElement {
  let typing = 0;
  return h('input', {type: 'search', value: view.filter, placeholder, 'aria-label': 'Filter', 'data-filter': '', oninput: (event: any) => {
    clearTimeout(typing);
    typing = window.setTimeout(() => change({filter: event.target.value.trim()}), 200);
  }});
}

export const segments = (label: string, names: readonly (readonly [string, string])[], chosen: string, pick: (name: string) => void) =>
  h('div', {class: 'segments', role: 'group', 'aria-label': label}, names.map(([name, title]) =>
    h('button', {type: 'button', 'aria-pressed': String(name === chosen), onclick: () => pick(name)}, title)));

function placeList(profile: Profile, by: By, places: Place[], all: number, hits: HitTable, picked: Place | null): HTMLElement {
  const rest = profile.restSites, timed = places.some(place => place.timeShare >= 0);
  return table<Place>([
    {title: by, value: place => by === 'line' || by === 'site' ? `${place.file || place.name}${place.file ? ':' + place.line : ''}` : place.name, wide: true,
     show: place => [h('span', {class: 'name'}, place.name), place.detail ? h('span', {class: 'quiet'}, ' ' + place.detail) : '']},
    {title: 'misses', value: place => place.misses, bar: place => all > 0 ? place.misses / all : 0,
     show: place => tooFewSamples(profile, place.misses) ? h('span', {class: 'weak', title: 'too few samples'}, count(place.misses)) : count(place.misses)},
    {title: 'share', minor: true, value: place => all > 0 ? place.misses / all : 0, show: place => percent(all > 0 ? place.misses / all : 0, 1)},
    {title: 'miss rate', value: place => place.missRate, show: place => percent(place.missRate, 1)},
    ...timed ? [{title: 'time', title_: 'Share of the processor time', value: (place: Place) => place.timeShare, show: (place: Place) => place.timeShare >= 0 ? percent(place.timeShare, 1) : '–'}] : [],
    ...profile.lineUse ? [{title: 'line use', title_: `Bytes of each fetched line that are used before it leaves a cache of ${profile.lineUse.cache}`,
                           value: (place: Place) => usedPerLine(place), show: (place: Place) => lineUseText(profile, place)}] : [],
    {title: 'accesses', minor: true, value: place => place.accesses, show: place => count(place.accesses)},
    {title: 'median', minor: true, title_: 'Half the reuses come back within this distance', value: place => median(place.reuse) * profile.granularity,
     show: place => place.reuse.bins ? span(median(place.reuse), profile.granularity) : '–'},
  ], places, {
    name: `places-by-${by}`, caption: `Misses by ${by}`, sort: 1, order: place => place.rank, rowsPerPage: 18, empty: 'No match.',
    onPick: place => change({pick: place.key, pair: -1}, 'pick'), picked: place => place === picked,
    note: rest.number > 0 ? `${count(rest.number)} more sites with ${count(hits.misses(rest.reuse))} misses did not fit in` : '',
  });
}

export function code(): HTMLElement {
  const profile = current();
  if (profile.sites.length === 0)
    return h('div', {class: 'card'}, h('h3', {}, 'No places in this profile'),
      h('p', {}, 'It was made from addresses alone. Profile the program itself with ', h('code', {}, 'revisit profile -- PROGRAM'),
        ', or a trace that names its sites with ', h('code', {}, 'revisit analyze --sites --pairs'), '.'));
  const by = (kBys.includes(view.by as By) ? view.by : 'line') as By;
  const filtered = view.filter ? {...profile, sites: profile.sites.filter(site => matches(site, view.filter))} : profile;
  const places = gather(filtered, by);
  let shape: Tree | null = null, resting = 0;
  const left = h('div', {}), right = h('div', {id: 'detail'});

  const draw = (what: string) => {
    const hits = new HitTable(chosenCache()), all = weigh(places, hits);
    let best: Place | null = null;
    for (const place of places) if (!best || place.rank > best.rank) best = place;
    const picked = places.find(place => place.key === view.pick) ?? best;
    replace(right, picked ? placePane(profile, picked, hits) : noPlace());
    if (view.pane === 'source') {
      if (what !== 'pick' || !picked || !left.querySelector(`[data-file="${CSS.escape(picked.file)}"]`))
        replace(left, sourcePane(profile, picked, hits, (file, line) => {
          const site = profile.sites.find(site => site.file === file && site.line === line);
          if (site) change({pick: keyOfLine(site), by: 'line', pair: -1}, by === 'line' ? 'pick' : 'view');
        }));
      if (picked) left.querySelectorAll('tr[data-line]').forEach(row => row.classList.toggle('picked', Number((row as HTMLElement).dataset.line) === picked.line));
    } else if (view.pane === 'flame') {
      if (what === 'pick') return;
      // The tree follows once the slider rests: it may have 10^5 leaves.
      clearTimeout(resting);
      const tree = () => {
        shape ??= treeOf(profile, filtered.sites);
        replace(left, flame(shape, hits, site => change({pick: keyOfLine(site), by: 'line', pair: -1}, by === 'line' ? 'pick' : 'view')));
      };
      if (what === 'view') tree();
      else resting = window.setTimeout(tree, 120);
    } else if (what === 'pick') {
      left.querySelectorAll('tbody tr').forEach(row => {
        const is = (row as any).row === picked;
        row.classList.toggle('picked', is);
        row.querySelector('.pick')?.setAttribute('aria-pressed', String(is));
      });
    } else replace(left, placeList(profile, by, places, all, hits, picked));
  };
  draw('view');
  onChange(what => { if (what !== 'view') draw(what); });

  const panes = kPanes.filter(([name]) => name !== 'source' || sources.size > 0);
  return h('div', {},
    h('div', {class: 'card toolbar'}, compactControls()),
    split([
      h('div', {class: 'filters'}, segments('Show', panes, view.pane, pane => change({pane})),
        filterBox('module, file, function, line, data'),
        view.pane === 'list' && segments('Gather by', kBys.map(name => [name, name] as const), by, name => change({by: name, pick: ''}))),
      left], right));
}

// By data object, by thread, by phase.
import {barChart, heatMap, kHeatLeft} from './chart';
import {HitTable} from './cache';
import {split, filterBox, segments} from './code';
import {DataObject, octaves, pathOf, Phase, Profile, profiles, Site, Thread} from './data';
import {Child, h, replace} from './dom';
import {bytes, count, fileName, percent, span} from './format';
import {cacheWords, histogramCard} from './overview';
import {compactControls} from './controls';
import {dataTree, flame} from './flame';
import {link, toCode} from './links';
import {byLevel, lineUse} from './place';
import {frameName, lineUseText, median, siteName, tooFewSamples, usedPerLine} from './places';
import {lineText} from './source';
import {change, chosenCache, current, onChange, view} from './state';
import {behind, table} from './table';

// Left and right panes that follow the sliders and the choice.
function live(left: (hits: HitTable) => Child, right: (hits: HitTable) => Child, above: Child = null): HTMLElement {
  const list = h('div', {}), detail = h('div', {id: 'detail'});
  const update = () => {
    const hits = new HitTable(chosenCache());
    replace(list, left(hits));
    replace(detail, right(hits));
  };
  update();
  onChange(what => { if (what !== 'view') update(); });
  return h('div', {}, h('div', {class: 'card toolbar'}, compactControls()), split([above, list], detail));
}

const keyOfObject = (object: DataObject) => `${object.kind} ${object.name}`;

export function data(): HTMLElement {
  const profile = current();
  const words = view.filter.toLowerCase().split(/\s+/);
  const objects = profile.objects.filter(object => words.every(word => keyOfObject(object).toLowerCase().includes(word)));
  const where = (object: DataObject) => {
    const frame = pathOf(profile, object.context).pop();
    return frame ? `${frame.function || ''}${frame.file ? ` ${fileName(frame.file)}:${frame.line}` : ''}`.trim() : '';
  };
  const chosen = (hits: HitTable) => {
    let best: DataObject | undefined;
    for (const object of objects) if (!best || hits.misses(object.reuse) > hits.misses(best.reuse)) best = object;
    return objects.find(object => keyOfObject(object) === view.pick) ?? best;
  };
  return live(hits => {
    if (view.pane === 'flame')
      return flame(dataTree(profile.sites.filter(site => words.every(word => site.data.toLowerCase().includes(word)))), hits,
        site => site.data && change({pick: site.data}, 'pick'), 'data and members');
    const rows = objects.map(object => ({object, misses: hits.misses(object.reuse)}));
    const all = rows.reduce((sum, row) => sum + row.misses, 0), rest = profile.restObjects, picked = chosen(hits);
    return table([
      {title: 'data', wide: true, value: (row: typeof rows[0]) => row.object.name,
       show: row => [h('span', {class: 'name'}, row.object.name || 'unnamed'), h('span', {class: 'quiet'}, ` ${row.object.kind} ${where(row.object)}`)]},
      {title: 'size', value: row => row.object.bytes, show: row => row.object.bytes ? bytes(row.object.bytes) : '–'},
      {title: 'misses', value: row => row.misses, bar: row => row.misses / Math.max(1, all),
       show: row => tooFewSamples(profile, row.misses) ? h('span', {class: 'weak', title: 'too few samples'}, count(row.misses)) : count(row.misses)},
      {title: 'share', minor: true, value: row => row.misses / Math.max(1e-300, all), show: row => percent(row.misses / Math.max(1e-300, all), 1)},
      {title: 'miss rate', value: row => row.misses / Math.max(1, row.object.reuse.total), show: row => percent(row.misses / Math.max(1, row.object.reuse.total), 1)},
      ...profile.lineUse ? [{title: 'line use', title_: `Bytes of each fetched line that are used before it leaves a cache of ${profile.lineUse.cache}`,
                             value: (row: typeof rows[0]) => usedPerLine(row.object), show: (row: typeof rows[0]) => lineUseText(profile, row.object)}] : [],
      {title: 'accesses', minor: true, value: row => row.object.accesses, show: row => count(row.object.accesses)},
    ], rows, {name: 'data', caption: 'Misses by data', sort: 2, rowsPerPage: 18, empty: 'No match.',
              onPick: row => change({pick: keyOfObject(row.object)}, 'pick'), picked: row => row.object === picked,
              note: rest.number > 0 ? `${count(rest.number)} more with ${count(hits.misses(rest.reuse))} misses did not fit in` : ''});
  }, hits => {
    const object = chosen(hits);
    return object ? objectPane(profile, object, hits) : h('p', {class: 'quiet'}, 'No data matches the filter.');
  }, h('div', {class: 'filters'}, segments('Show', [['list', 'List'], ['flame', 'Icicle']], view.pane === 'flame' ? 'flame' : 'list', pane => change({pane})), filterBox('name, kind')));
}

interface MemberRow { name: string; offset: number; misses: number; accesses: number; writes: number; lines: Site[] }

// Misses by member of the object's type; what no member is known of is one row.
function memberTable(object: DataObject, sites: Site[], hits: HitTable): Child {
  if (!sites.some(site => site.member)) return null;
  const rows = new Map<string, MemberRow>();
  for (const site of sites) {
    const row = rows.get(site.member) ?? {name: site.member || 'several, or not known', offset: site.member ? site.memberOffset : -1, misses: 0, accesses: 0, writes: 0, lines: []};
    row.misses += hits.misses(site.reuse);
    row.accesses += site.accesses;
    row.writes += site.writes;
    row.lines.push(site);
    rows.set(site.member, row);
  }
  const all = Math.max(1, [...rows.values()].reduce((sum, row) => sum + row.misses, 0));
  return [h('h4', {}, `Members of ${object.type}`, object.typeBytes ? h('span', {class: 'quiet'}, ` ${object.typeBytes} B`) : ''), table<MemberRow>([
    {title: 'member', wide: true, value: row => row.name, show: row => [h('code', {class: 'name'}, row.name), h('span', {class: 'quiet'}, row.offset >= 0 ? ` +${row.offset}` : '')]},
    {title: 'misses', value: row => row.misses, show: row => count(row.misses), bar: row => row.misses / all},
    {title: 'accesses', value: row => row.accesses, show: row => count(row.accesses)},
    {title: 'writes', minor: true, value: row => row.writes / Math.max(1, row.accesses), show: row => percent(row.writes / Math.max(1, row.accesses), 0)},
  ], [...rows.values()], {name: 'members', caption: `Misses by member of ${object.type}`, sort: 1, rowsPerPage: 10})];
}

// Lines that touch an object, with their text: it names the member.
function objectPane(profile: Profile, object: DataObject, hits: HitTable): HTMLElement {
  const key = keyOfObject(object), path = pathOf(profile, object.context);
  const sites = profile.sites.filter(site => site.data === key).map(site => ({site, misses: hits.misses(site.reuse)}));
  const all = Math.max(1, sites.reduce((sum, row) => sum + row.misses, 0));
  return h('div', {},
    h('h3', {}, h('span', {class: 'name'}, object.name || 'unnamed'), h('span', {class: 'quiet'}, ` ${object.kind}`)),
    h('p', {}, object.bytes ? `${bytes(object.bytes)}, ` : '', `${count(object.accesses)} accesses.`,
      object.bytes > hits.cache.bytes ? ` ${(object.bytes / hits.cache.bytes).toPrecision(2)} times the chosen cache.` : ''),
    byLevel(object.reuse, hits), lineUse(profile, object), memberTable(object, sites.map(row => row.site), hits),
    sites.length ? [h('h4', {}, 'Accessed by'), table([
      {title: 'line', wide: true, value: (row: typeof sites[0]) => siteName(row.site, row.site.id),
       show: row => [link(h('span', {class: 'name'}, siteName(row.site, row.site.id)), toCode(row.site), 'Show this line'), h('span', {class: 'quiet'}, ' ' + row.site.function),
                     row.site.member ? h('span', {class: 'quiet'}, ` ${row.site.member}`) : '',
                     lineText(row.site.file, row.site.line) ? h('code', {class: 'member'}, lineText(row.site.file, row.site.line)) : '']},
      {title: 'misses', value: row => row.misses, show: row => count(row.misses), bar: row => row.misses / all},
      {title: 'writes', value: row => row.site.writes / Math.max(1, row.site.accesses), show: row => percent(row.site.writes / Math.max(1, row.site.accesses), 0)},
    ], sites, {name: 'accessed-by', caption: `Lines that access ${object.name}`, sort: 1, rowsPerPage: 8})] : null,
    path.length ? [h('h4', {}, 'Allocated in'), h('ol', {class: 'path'}, path.map(frame => h('li', {}, h('span', {class: 'name'}, frame.function || fileName(frame.module)),
      frame.file ? h('span', {class: 'quiet'}, ` ${fileName(frame.file)}:${frame.line}`) : '')))] : null,
    histogramCard('Reuse distances of this data', 'Memory touched between two uses of a block.', object.reuse, profile.granularity, 'object-distances', 170));
}

export function threads(): HTMLElement {
  const profile = current();
  const chosen = (hits: HitTable) => {
    let best = profile.threads[0]!;
    for (const thread of profile.threads) if (hits.misses(thread.reuse) > hits.misses(best.reuse)) best = thread;
    return profile.threads.find(thread => `thread ${thread.id}` === view.pick) ?? best;
  };
  return live(hits => {
    const misses = (thread: Thread) => hits.misses(thread.reuse);
    const most = Math.max(1, ...profile.threads.map(misses));
    return [
      h('p', {class: 'quiet'}, profile.model === 'private'
        ? 'One private stack per thread. Invalidated: reuses lost to another thread’s write, truly or falsely shared.'
        : 'One stack for all threads: distances include what the others touch. Profile with --model private to see invalidations.'),
      profile.shared && h('p', {}, 'In a cache of the chosen size for each thread ', h('b', {}, percent(hits.misses(profile.reuse) / Math.max(1, profile.reuse.total))),
        ' of accesses miss; in one such cache that all share, ', h('b', {}, percent(hits.misses(profile.shared) / Math.max(1, profile.shared.total))), '.'),
      table<Thread>([
        {title: 'thread', wide: true, value: thread => thread.id, show: thread => `thread ${thread.id}`},
        {title: 'accesses', value: thread => thread.accesses, show: thread => count(thread.accesses)},
        {title: 'misses', value: misses, show: thread => count(misses(thread)), bar: thread => misses(thread) / most},
        {title: 'miss rate', value: thread => misses(thread) / Math.max(1, thread.reuse.total), show: thread => percent(misses(thread) / Math.max(1, thread.reuse.total), 1)},
        {title: 'first touches', value: thread => thread.reuse.cold, show: thread => count(thread.reuse.cold)},
        {title: 'invalidated', title_: 'Reuses lost to another thread’s write', value: thread => thread.reuse.invalidated, show: thread => count(thread.reuse.invalidated)},
      ], profile.threads, {name: 'threads', caption: 'By thread', rowsPerPage: 32, onPick: thread => change({pick: `thread ${thread.id}`}, 'pick'), picked: thread => thread === chosen(hits)})];
  }, hits => {
    const thread = chosen(hits);
    const sites = profile.sites.filter(site => site.reuse.invalidated > 0).sort((a, b) => b.reuse.invalidated - a.reuse.invalidated).slice(0, 6);
    return h('div', {}, h('h3', {}, `thread ${thread.id}`), h('p', {}, `${count(thread.accesses)} accesses, ${count(thread.reuse.invalidated)} reuses invalidated by other threads.`),
      profile.sharing.length ? h('p', {}, link('Which lines the threads share', {tab: 'sharing', pick: ''})) : null,
      byLevel(thread.reuse, hits),
      sites.length ? [h('h4', {}, 'Where blocks are invalidated (all threads)'), h('ul', {}, sites.map(site => h('li', {}, link(siteName(site, site.id), toCode(site)), ` ${count(site.reuse.invalidated)}`)))] : null,
      histogramCard('Reuse distances of this thread', 'Memory touched between two uses of a block.', thread.reuse, profile.granularity, 'thread-distances', 170));
  });
}

function wide(draw: (hits: HitTable) => HTMLElement): HTMLElement {
  const box = h('div', {});
  const update = () => replace(box, draw(new HitTable(chosenCache())));
  update();
  onChange(what => { if (what === 'cache') update(); });
  return h('div', {}, h('div', {class: 'card toolbar'}, compactControls()), box);
}

// Neighbouring windows drawn as one column, where there are more than a screen can tell apart.
const kColumns = 240;

// Functions that make most accesses, and their shares of each column.
function functionsOf(profile: Profile, columns: {windows: Phase[]; total: number}[]): {names: string[]; share: (column: number, name: string) => number} {
  const all = new Map<string, number>();
  const shares = columns.map(column => {
    const here = new Map<string, number>();
    for (const phase of column.windows) for (const one of phase.sites) {
      const site = profile.siteById.get(one.site);
      if (!site) continue;
      const name = frameName(site), accesses = one.reuse.total;
      here.set(name, (here.get(name) ?? 0) + accesses / column.total);
      all.set(name, (all.get(name) ?? 0) + accesses);
    }
    return here;
  });
  const names = [...all].sort((a, b) => a[1] - b[1]).slice(-10).map(([name]) => name);
  return {names, share: (column, name) => shares[column]!.get(name) ?? 0};
}

export function phases(): HTMLElement {
  const profile = profiles[view.profile]!;
  const each = Math.ceil(profile.phases.length / kColumns);
  const columns: {windows: Phase[]; begin: number; end: number; total: number; shares: Map<number, number>; infinite: number}[] = [];
  for (let at = 0; at < profile.phases.length; at += each) {
    const windows = profile.phases.slice(at, at + each);
    const total = Math.max(1, windows.reduce((sum, phase) => sum + phase.reuse.total, 0));
    const shares = new Map<number, number>();
    for (const phase of windows)
      for (const octave of octaves(phase.reuse)) shares.set(octave.low, (shares.get(octave.low) ?? 0) + octave.count / total);
    const infinite = windows.reduce((sum, phase) => sum + phase.reuse.cold + phase.reuse.invalidated, 0) / total;
    columns.push({windows, begin: windows[0]!.begin, end: windows[windows.length - 1]!.end, total, shares, infinite});
  }
  const lows = [...new Set(columns.flatMap(column => [...column.shares.keys()]))].sort((a, b) => a - b);
  const share = (column: number, row: number) =>
    row === lows.length ? columns[column]!.infinite : columns[column]!.shares.get(lows[row]!) ?? 0;
  const ran = functionsOf(profile, columns);
  const choose = (from: number, to: number) => view.from < 0 || (view.from !== view.to && view.to - view.from >= each)
    ? change({from, to}) : change({from: Math.min(from, view.from), to: Math.max(to, view.to)});
  const label = (low: number) => low === 0 ? '0' : `≥ ${span(low, profile.granularity)}`;
  const stretch = view.from >= 0 && view.to >= view.from ? `windows ${view.from + 1} to ${view.to + 1} of ${profile.phases.length}` : '';
  return wide(hits => {
    const misses = (phase: Phase) => hits.misses(phase.reuse) / Math.max(1, phase.reuse.total);
    const missesOf = (column: typeof columns[0]) => column.windows.reduce((sum, phase) => sum + hits.misses(phase.reuse), 0) / column.total;
    const step = Math.max(1, Math.round(columns.length / 6));
    const range = (column: typeof columns[0]) => `${count(column.begin)} – ${count(column.end)}`;
    return h('section', {class: 'card'}, h('h3', {}, 'Over the run'),
      h('p', {class: 'quiet'}, `Misses in a cache of ${cacheWords(chosenCache())}, by window of the run. Click a column, and all tabs show that stretch; click a second one to widen it.`),
      stretch && h('p', {}, h('b', {}, stretch), ' ', link('show in the Overview', {tab: 'overview'}), ' ',
        h('button', {type: 'button', onclick: () => change({from: -1, to: -1})}, 'Whole run')),
      barChart({
        label: `Share of accesses that miss, in ${columns.length} windows of the run. Use left and right arrows to read values.`,
        series: [{name: 'misses', color: 'var(--c2)'}], yTitle: 'misses, share of accesses', left: kHeatLeft, height: 170,
        bars: columns.map((column, i) => ({label: range(column), tick: count(column.begin), values: [missesOf(column)], chosen: i * each >= view.from && i * each <= view.to})),
        xTitle: 'accesses since the start', pick: at => choose(at * each, Math.min(profile.phases.length, (at + 1) * each) - 1),
        tell: bar => [h('b', {}, bar.label), ` misses ${percent(bar.values[0]!)}`],
      }),
      h('p', {class: 'quiet'}, 'The stronger the colour, the larger the share of that window’s accesses with this reuse distance. The top row is first touches and invalidated reuses.'),
      heatMap({
        label: `Reuse distances over ${columns.length} windows of the run. Use left and right arrows to read values.`,
        columns: columns.length, rows: [...lows.map(label), 'first touch'], value: share,
        columnTicks: columns.map((column, at) => ({at, label: count(column.begin)})).filter((_, i) => i % step === 0),
        xTitle: 'accesses since the start',
        tell: at => {
          const column = columns[at]!, blocks = column.windows.reduce((most, phase) => Math.max(most, phase.distinct), 0);
          return [h('b', {}, range(column)), ` misses ${percent(missesOf(column))} in the chosen cache`,
                  each === 1 ? `, median ${span(median(column.windows[0]!.reuse), profile.granularity)}, ${count(blocks)} blocks` : ''];
        },
      }),
      ran.names.length ? [h('h4', {}, 'Functions'), h('p', {class: 'quiet'}, 'The stronger the colour, the larger the share of the window’s accesses that the function makes.'),
        heatMap({
          label: `Functions over ${columns.length} windows of the run. Use left and right arrows to read values.`,
          columns: columns.length, rows: ran.names, value: (column, row) => ran.share(column, ran.names[row]!),
          columnTicks: columns.map((column, at) => ({at, label: count(column.begin)})).filter((_, i) => i % step === 0),
          xTitle: 'accesses since the start',
          tell: at => [h('b', {}, range(columns[at]!)), ' ', ran.names.map(name => ({name, share: ran.share(at, name)})).filter(one => one.share >= 0.005)
            .sort((a, b) => b.share - a.share).slice(0, 4).map(one => `${one.name} ${percent(one.share, 0)}`).join(', ')],
        })] : null,
      behind<Phase>([
        {title: 'begin', value: phase => phase.begin, show: phase => count(phase.begin)},
        {title: 'end', value: phase => phase.end, show: phase => count(phase.end)},
        {title: 'blocks', value: phase => phase.distinct, show: phase => count(phase.distinct)},
        {title: 'miss rate', value: misses, show: phase => percent(misses(phase)), bar: misses},
        {title: 'median', value: phase => median(phase.reuse) * profile.granularity, show: phase => span(median(phase.reuse), profile.granularity)},
      ], profile.phases, {name: 'phases', caption: 'Phases of the run', rowsPerPage: 50}));
  });
}

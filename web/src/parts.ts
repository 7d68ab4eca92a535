// By data object, by thread, by phase.
import {barChart, heatMap, kHeatLeft} from './chart';
import {HitTable} from './cache';
import {DataObject, octaves, pathOf, Phase, profiles, Thread} from './data';
import {h, replace} from './dom';
import {bytes, count, fileName, percent, span} from './format';
import {cacheWords} from './overview';
import {controls} from './controls';
import {median} from './places';
import {chosenCache, onChange, view} from './state';
import {behind, table} from './table';

function live(draw: (hits: HitTable) => HTMLElement): HTMLElement {
  const box = h('div', {});
  const update = () => replace(box, draw(new HitTable(chosenCache())));
  update();
  onChange(what => { if (what === 'cache') update(); });
  return h('div', {}, h('div', {class: 'card toolbar'}, controls()), box);
}

export function data(): HTMLElement {
  const profile = profiles[view.profile]!;
  const where = (object: DataObject) => {
    const frame = pathOf(profile, object.context).pop();
    return frame ? `${frame.function || ''}${frame.file ? ` ${fileName(frame.file)}:${frame.line}` : ''}`.trim() : '';
  };
  return live(hits => {
    const rows = profile.objects.map(object => ({object, misses: hits.misses(object.reuse)}));
    const all = rows.reduce((sum, row) => sum + row.misses, 0);
    const rest = profile.restObjects;
    return h('section', {class: 'card'}, h('h3', {}, 'Misses by data'),
      h('p', {class: 'quiet'}, `In a cache of ${cacheWords(chosenCache())}.`),
      table([
        {title: 'data', wide: true, value: (row: typeof rows[0]) => row.object.name,
         show: row => [h('span', {class: 'name'}, row.object.name || 'unnamed'), h('span', {class: 'quiet'}, ` ${row.object.kind} ${where(row.object)}`)]},
        {title: 'size', value: row => row.object.bytes, show: row => row.object.bytes ? bytes(row.object.bytes) : '–'},
        {title: 'misses', value: row => row.misses, show: row => count(row.misses), bar: row => row.misses / Math.max(1, all)},
        {title: 'share', value: row => row.misses / Math.max(1e-300, all), show: row => percent(row.misses / Math.max(1e-300, all), 1)},
        {title: 'miss rate', value: row => row.misses / Math.max(1, row.object.reuse.total), show: row => percent(row.misses / Math.max(1, row.object.reuse.total), 1)},
        {title: 'accesses', value: row => row.object.accesses, show: row => count(row.object.accesses)},
        {title: 'median', value: row => median(row.object.reuse) * profile.granularity, show: row => span(median(row.object.reuse), profile.granularity)},
      ], rows, {name: 'data', caption: 'Misses by data', sort: 2, rowsPerPage: 20,
                note: rest.number > 0 ? `${count(rest.number)} more with ${count(hits.misses(rest.reuse))} misses did not fit in` : ''}));
  });
}

export function threads(): HTMLElement {
  const profile = profiles[view.profile]!;
  return live(hits => {
    const misses = (thread: Thread) => hits.misses(thread.reuse);
    const most = Math.max(1, ...profile.threads.map(misses));
    return h('section', {class: 'card'}, h('h3', {}, 'By thread'),
      h('p', {class: 'quiet'}, profile.model === 'private'
        ? 'Each thread has its own stack. “Lost” are reuses that another thread’s write took away: sharing, true or false.'
        : 'One stack for all threads: distances include what the others touch. Profile with --model private to tell what sharing costs.'),
      profile.shared && h('p', {}, 'In a cache of the chosen size for each thread ', h('b', {}, percent(hits.misses(profile.reuse) / Math.max(1, profile.reuse.total))),
        ' of accesses miss; in one such cache that all share, ', h('b', {}, percent(hits.misses(profile.shared) / Math.max(1, profile.shared.total))), '.'),
      table<Thread>([
        {title: 'thread', wide: true, value: thread => thread.id, show: thread => `thread ${thread.id}`},
        {title: 'accesses', value: thread => thread.accesses, show: thread => count(thread.accesses)},
        {title: 'misses', value: misses, show: thread => count(misses(thread)), bar: thread => misses(thread) / most},
        {title: 'miss rate', value: thread => misses(thread) / Math.max(1, thread.reuse.total), show: thread => percent(misses(thread) / Math.max(1, thread.reuse.total))},
        {title: 'first touches', value: thread => thread.reuse.cold, show: thread => count(thread.reuse.cold)},
        {title: 'lost', title_: 'Reuses lost to another thread’s write', value: thread => thread.reuse.invalidated, show: thread => count(thread.reuse.invalidated)},
        {title: 'median', value: thread => median(thread.reuse) * profile.granularity, show: thread => span(median(thread.reuse), profile.granularity)},
      ], profile.threads, {name: 'threads', caption: 'By thread', rowsPerPage: 32}));
  });
}

// Neighbouring windows drawn as one column, where there are more than a screen can tell apart.
const kColumns = 240;

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
  const label = (low: number) => low === 0 ? '0' : `≥ ${span(low, profile.granularity)}`;
  return live(hits => {
    const misses = (phase: Phase) => hits.misses(phase.reuse) / Math.max(1, phase.reuse.total);
    const missesOf = (column: typeof columns[0]) => column.windows.reduce((sum, phase) => sum + hits.misses(phase.reuse), 0) / column.total;
    const step = Math.max(1, Math.round(columns.length / 6));
    const range = (column: typeof columns[0]) => `${count(column.begin)} – ${count(column.end)}`;
    return h('section', {class: 'card'}, h('h3', {}, 'Over the run'),
      h('p', {class: 'quiet'}, `Misses in a cache of ${cacheWords(chosenCache())}, by window of the run.`),
      barChart({
        label: `Share of accesses that miss, in ${columns.length} windows of the run. Use left and right arrows to read values.`,
        series: [{name: 'misses', color: 'var(--c2)'}], yTitle: 'misses, share of accesses', left: kHeatLeft, height: 170,
        bars: columns.map(column => ({label: range(column), tick: count(column.begin), values: [missesOf(column)]})),
        xTitle: 'accesses since the start',
        tell: bar => [h('b', {}, bar.label), ` misses ${percent(bar.values[0]!)}`],
      }),
      h('p', {class: 'quiet'}, 'The stronger the colour, the larger the share of that window’s accesses with this reuse distance. The top row is first touches and reuses lost.'),
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
      behind<Phase>([
        {title: 'begin', value: phase => phase.begin, show: phase => count(phase.begin)},
        {title: 'end', value: phase => phase.end, show: phase => count(phase.end)},
        {title: 'blocks', value: phase => phase.distinct, show: phase => count(phase.distinct)},
        {title: 'miss rate', value: misses, show: phase => percent(misses(phase)), bar: misses},
        {title: 'median', value: phase => median(phase.reuse) * profile.granularity, show: phase => span(median(phase.reuse), profile.granularity)},
      ], profile.phases, {name: 'phases', caption: 'Phases of the run', rowsPerPage: 50}));
  });
}

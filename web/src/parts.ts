// By data object, by thread, by phase.
import {heatMap} from './chart';
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

export function phases(): HTMLElement {
  const profile = profiles[view.profile]!;
  const found = profile.phases.map(phase => octaves(phase.reuse));
  const lows = [...new Set(found.flatMap(list => list.map(octave => octave.low)))].sort((a, b) => a - b);
  const share = (phase: number, row: number) => {
    const all = profile.phases[phase]!.reuse;
    if (row === lows.length) return (all.cold + all.invalidated) / Math.max(1, all.total);
    return (found[phase]!.find(octave => octave.low === lows[row])?.count ?? 0) / Math.max(1, all.total);
  };
  const label = (low: number) => low === 0 ? '0' : `≥ ${span(low, profile.granularity)}`;
  return live(hits => {
    const misses = (phase: Phase) => hits.misses(phase.reuse) / Math.max(1, phase.reuse.total);
    const columns = profile.phases.length, step = Math.max(1, Math.round(columns / 6));
    return h('section', {class: 'card'}, h('h3', {}, 'Over the run'),
      h('p', {class: 'quiet'}, 'Darker: a larger share of that window’s accesses has this reuse distance. The top row is first touches.'),
      heatMap({
        label: `Reuse distances over ${columns} windows of the run. Use left and right arrows to read values.`,
        columns, rows: [...lows.map(label), 'first touch'], value: share,
        columnTicks: profile.phases.map((phase, at) => ({at, label: count(phase.begin)})).filter((_, i) => i % step === 0),
        xTitle: 'accesses since the start',
        tell: column => {
          const phase = profile.phases[column]!;
          return [h('b', {}, `${count(phase.begin)} – ${count(phase.end)}`), ` misses ${percent(misses(phase))} in the chosen cache, median ${span(median(phase.reuse), profile.granularity)}, ${count(phase.distinct)} blocks`];
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

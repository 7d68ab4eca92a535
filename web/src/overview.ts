// What was measured, and what any cache makes of it.
import {Bar, barChart, lineChart, Tick} from './chart';
import {blocksOf, Cache, curveAt, CurvePoint, HitTable, missRatioCurve, predict} from './cache';
import {caches, cachesAreHosts, Histogram, octaves, percentile, Profile, profiles} from './data';
import {Child, h, replace} from './dom';
import {bytes, count, percent, signed, sizeSpec, span} from './format';
import {chosenCache, onChange, view} from './state';
import {behind} from './table';
import {controls} from './controls';

export const kColors = ['var(--c1)', 'var(--c2)', 'var(--c3)', 'var(--c4)', 'var(--c5)', 'var(--c6)'];

export const cacheWords = (cache: Cache) =>
  `${bytes(cache.bytes)}, ${cache.ways === 0 || cache.ways >= blocksOf(cache) ? 'fully associative' : cache.ways + '-way'}, ${cache.line} B lines`;

// Powers of two from `low` to `high` blocks, as memory.
export function sizeTicks(low: number, high: number, granularity: number): Tick[] {
  const out: Tick[] = [];
  const steps = Math.log2(high / low) > 16 ? 2 : 1;
  for (let at = low; at <= high * 1.001; at *= 2 ** steps) out.push({at, label: span(at, granularity)});
  return out;
}

export function curveRange(profile: Profile[]): [number, number] {
  let high = 16;
  for (const one of profile)
    for (const point of missRatioCurve(one.reuse)) high = Math.max(high, point.blocks);
  const granularity = profile[0]!.granularity;
  for (const cache of caches) high = Math.max(high, cache.bytes / granularity);
  return [1, 2 ** Math.ceil(Math.log2(high))];
}

export function histogramBars(histogram: Histogram, granularity: number): Bar[] {
  const total = Math.max(histogram.total, 1e-300);
  const found = octaves(histogram);
  const bars: Bar[] = [];
  // Empty powers of two keep their place, so that the axis is even.
  let next = 0;
  for (const octave of found) {
    for (; next < octave.low; next = next === 0 ? 1 : 2 * next)
      bars.push(bar(next, next === 0 ? 1 : 2 * next, 0, 0));
    bars.push(bar(octave.low, octave.high, octave.count, octave.error));
    next = octave.high;
  }
  if (histogram.cold > 0)
    bars.push({label: 'cold: first touch', tick: 'cold', values: [histogram.cold / total], error: histogram.coldError / total, infinite: true});
  if (histogram.invalidated > 0)
    bars.push({label: 'lost to another thread’s write', tick: 'lost', values: [histogram.invalidated / total], infinite: true});
  return bars;
  function bar(low: number, high: number, amount: number, error: number): Bar {
    return {label: high <= 1 ? span(0, granularity) : `${span(low, granularity)} – ${span(high, granularity)}`,
            tick: span(low, granularity), values: [amount / total], error: error / total, weak: error > amount / 2};
  }
}

export function histogramCard(title: string, about: string, histogram: Histogram, granularity: number, name: string): HTMLElement {
  const bars = histogramBars(histogram, granularity);
  const peak = bars.reduce((best, bar) => bar.values[0]! > best.values[0]! ? bar : best, bars[0] ?? {label: '', tick: '', values: [0]});
  const weak = bars.some(bar => bar.weak && bar.values[0]! > 0);
  return h('section', {class: 'card'}, h('h3', {}, title), h('p', {class: 'quiet'}, about, weak && ' Greyed bars have more error than substance.'),
    barChart({
      label: `${title}. Largest: ${peak.label} with ${percent(peak.values[0]!)} of accesses. Use left and right arrows to read values.`,
      series: [{name: 'accesses', color: kColors[0]!}], bars, xTitle: granularity === 1 ? 'accesses' : 'memory touched in between',
      tell: bar => [h('b', {}, bar.label), ` ${percent(bar.values[0]!)} of accesses`, (bar.error ?? 0) > 0 ? ` ± ${percent(bar.error!)}` : ''],
    }),
    behind([
      {title: 'distance', value: (bar: Bar) => bar.label, wide: true},
      {title: 'accesses', value: bar => bar.values[0]! * histogram.total, show: bar => count(bar.values[0]! * histogram.total)},
      {title: 'share', value: bar => bar.values[0]!, show: bar => percent(bar.values[0]!), bar: bar => bar.values[0]!},
      {title: 'error', value: bar => bar.error ?? 0, show: bar => (bar.error ?? 0) > 0 ? '± ' + percent(bar.error!) : 'exact'},
    ], bars.filter(bar => bar.values[0]! > 0), {name, caption: title, rowsPerPage: 40}));
}

// The sizes at which the miss ratio falls steeply, as the terminal report finds them.
export function knees(histogram: Histogram): {blocks: number; before: number; after: number}[] {
  const out: {blocks: number; before: number; after: number}[] = [];
  let miss = 1, open: {blocks: number; before: number; after: number} | null = null;
  const close = () => {
    if (open && open.before - open.after >= 0.05) out.push(open);
    open = null;
  };
  for (const octave of octaves(histogram)) {
    const share = octave.count / histogram.total;
    if (share < 0.01 || (open && octave.low > (open as {blocks: number}).blocks)) close();
    if (share >= 0.01) open = {blocks: octave.high, before: open ? (open as {before: number}).before : miss, after: miss - share};
    miss -= share;
  }
  close();
  return out.sort((a, b) => b.before - b.after - (a.before - a.after)).slice(0, 3);
}

function figure(name: string, value: Child, note?: Child): HTMLElement {
  return h('div', {class: 'figure-box'}, h('dt', {}, name), h('dd', {}, value, note ? h('small', {}, note) : null));
}

function headline(profile: Profile): Child {
  const out: Child[] = [];
  const biggest = knees(profile.reuse).filter(knee => knee.blocks > 64)[0];
  const last = caches[caches.length - 1];
  if (last) out.push(`${last.name} of ${cachesAreHosts ? 'this machine' : 'the chosen caches'} (${bytes(last.bytes)}) would serve `,
    h('b', {}, percent(predict(profile.reuse, last).hitRate)), ' of all accesses. ');
  if (biggest) out.push('The working set that counts ends at ', h('b', {}, span(biggest.blocks, profile.granularity)),
    `: a cache that holds it brings misses from ${percent(biggest.before)} to ${percent(biggest.after)}. `);
  return out;
}

function facts(profile: Profile): HTMLElement {
  const touched = profile.granularity > 1 ? bytes(profile.distinct * profile.granularity) : `${count(profile.distinct)} blocks`;
  const error = profile.reuse.errors ? Math.hypot(...profile.reuse.errors) / Math.max(1, profile.reuse.total) : 0;
  return h('dl', {class: 'figures'},
    figure('accesses', count(profile.accesses)),
    figure('memory touched', touched, profile.granularity > 1 ? `${count(profile.distinct)} blocks of ${profile.granularity} B` : null),
    figure('first touches', percent(profile.reuse.cold / Math.max(1, profile.reuse.total))),
    figure('half the reuses within', span(Math.round(percentile(profile.reuse, 0.5)), profile.granularity)),
    figure('nine in ten within', span(Math.round(percentile(profile.reuse, 0.9)), profile.granularity)),
    figure('method', profile.method, profile.sampled
      ? `${count(profile.sampled.samples)} samples, one in ${count(profile.sampled.period)}${error ? `; ± ${percent(error)}` : ''}`
      : profile.model === 'private' ? 'a stack per thread' : 'every access'));
}

// Hit rates of the marked caches and the chosen one, and the curve; redrawn as the sliders move.
function cachePanel(profile: Profile): HTMLElement {
  const curve = missRatioCurve(profile.reuse);
  const [low, high] = curveRange([profile]);
  const rates = h('div', {}), answer = h('div', {class: 'answer', 'aria-live': 'polite'}), chart = h('div', {});
  const marked = caches.map(cache => ({cache, prediction: predict(profile.reuse, cache)}));
  const update = () => {
    const cache = chosenCache(), prediction = predict(profile.reuse, cache, new HitTable(cache));
    const whole = cache.ways === 0 || (cache.bytes / cache.line) % cache.ways === 0;
    const nearest = marked.filter(entry => entry.cache.bytes <= view.size).pop();
    replace(answer,
      h('div', {class: 'big'}, h('output', {id: 'hit-rate', 'data-hit-rate': prediction.hitRate}, percent(prediction.hitRate, 3)), h('small', {}, ' hits')),
      h('div', {}, percent(prediction.missRate, 3), ' misses', prediction.error > 0 ? ` ± ${percent(prediction.error)}` : '',
        nearest && nearest.cache.bytes !== cache.bytes
          ? [', ', signed(prediction.missRate - nearest.prediction.missRate, size => `${(100 * size).toFixed(2)} points`), ` against ${nearest.cache.name}`] : ''),
      h('div', {class: 'quiet'}, cacheWords(cache), view.threads > 1 ? ` (one of ${view.threads} equal parts of ${bytes(view.size)})` : ''),
      h('div', {class: 'quiet'}, whole ? h('code', {}, `revisit cache PROFILE --cache ${sizeSpec(cache.bytes)}:${cache.ways || 'full'}:${cache.line}`)
        : 'Not a whole number of sets; modelled all the same.'),
      cache.line !== profile.granularity && h('div', {class: 'quiet'},
        `The profile counts blocks of ${profile.granularity} B; another line size is an estimate (profile with --granularity ${cache.line} to count lines).`));
    replace(chart, curveChart(profile, curve, low, high, prediction.missRate));
  };
  const rateRow = ({cache, prediction}: typeof marked[0]) => h('tr', {},
    h('th', {scope: 'row'}, cache.name), h('td', {}, bytes(cache.bytes)), h('td', {}, percent(prediction.hitRate)),
    h('td', {class: 'bar', style: `--share:${100 * prediction.missRate}%`}, percent(prediction.missRate),
      prediction.error > 0 ? ` ± ${percent(prediction.error)}` : ''));
  if (marked.length) rates.append(h('table', {class: 'rates'},
    h('caption', {class: 'unseen'}, 'Hit rates of the marked caches'),
    h('thead', {}, h('tr', {}, ['cache', 'size', 'hits', 'misses'].map(title => h('th', {scope: 'col'}, title)))),
    h('tbody', {}, marked.map(rateRow))));
  update();
  onChange(what => { if (what === 'cache') update(); });
  return h('section', {class: 'card hero'},
    h('h3', {}, 'What would a cache of … do?'),
    h('div', {class: 'cache-panel'}, controls(), answer, rates),
    chart,
    behind([
      {title: 'bytes', value: (point: CurvePoint) => point.blocks * profile.granularity, show: point => span(point.blocks, profile.granularity)},
      {title: 'miss ratio', value: point => point.missRate, show: point => percent(point.missRate, 4), bar: point => point.missRate},
      {title: 'error', value: point => point.error, show: point => point.error > 0 ? '± ' + percent(point.error) : 'exact'},
    ], curve, {name: 'miss-ratio-curve', caption: 'Miss ratio by size of a fully associative cache', rowsPerPage: 40}));
}

function curveChart(profile: Profile, curve: CurvePoint[], low: number, high: number, missRate: number): HTMLElement {
  const perBlock = profile.granularity;
  const chosen = chosenCache();
  const at = chosen.bytes / perBlock;
  return lineChart({
    label: `Miss ratio by cache size, from ${percent(curveAt(curve, low))} at ${span(low, perBlock)} to ${percent(curveAt(curve, high))} at ${span(high, perBlock)}. Use left and right arrows to read values.`,
    lines: [{name: 'fully associative', color: kColors[0]!,
             points: curve.map(point => ({x: Math.max(low, point.blocks), y: point.missRate, error: point.error})).concat(
               [{x: high, y: curveAt(curve, high), error: curve.length ? curve[curve.length - 1]!.error : 0}])}],
    marks: [...caches.map(cache => ({x: cache.bytes / perBlock, label: cache.name})), {x: at, label: 'chosen', chosen: true}],
    dots: [{x: at, y: missRate, label: 'the chosen cache, with its ways'}],
    low, high, ticks: sizeTicks(low, high, perBlock), xTitle: 'cache size', yTitle: 'misses, share of accesses', height: 290,
    tell: blocks => [h('b', {}, span(blocks, perBlock)), ` misses ${percent(curveAt(curve, blocks))}`],
  });
}

function cumulativeCard(profile: Profile): HTMLElement {
  const finite = Math.max(1e-300, profile.reuse.total - profile.reuse.cold - profile.reuse.invalidated);
  const curve = missRatioCurve(profile.reuse);
  const within = (point: {missRate: number}) => (1 - point.missRate) * profile.reuse.total / finite;
  const [low, high] = curveRange([profile]);
  const shares = [0.5, 0.7, 0.8, 0.9, 0.95, 0.99].map(share => ({share, distance: Math.round(percentile(profile.reuse, share))}));
  return h('section', {class: 'card'}, h('h3', {}, 'Reuses within a distance'),
    h('p', {class: 'quiet'}, 'Share of the reuses, first touches left out, that come back before this much other memory was touched.'),
    lineChart({
      label: `Cumulative reuse distance: half within ${span(shares[0]!.distance, profile.granularity)}, nine in ten within ${span(shares[3]!.distance, profile.granularity)}.`,
      lines: [{name: 'reuses', color: kColors[2]!, points: curve.map(point => ({x: Math.max(low, point.blocks), y: within(point), error: point.error})).concat([{x: high, y: 1, error: 0}])}],
      low, high, ticks: sizeTicks(low, high, profile.granularity), xTitle: 'reuse distance', yTitle: 'share of reuses',
      tell: blocks => [h('b', {}, `within ${span(blocks, profile.granularity)}`), ` ${percent(within({missRate: curveAt(curve, blocks)}))} of reuses`],
    }),
    behind([
      {title: 'share of reuses', value: (row: {share: number; distance: number}) => row.share, show: row => percent(row.share, 0)},
      {title: 'within', value: row => row.distance * profile.granularity, show: row => span(row.distance, profile.granularity)},
    ], shares, {name: 'percentiles', caption: 'Percentiles of the reuse distance'}));
}

export function overview(): HTMLElement {
  const profile = profiles[view.profile]!;
  if (profile.reuse.total <= 0 && !profile.time) return h('div', {}, h('p', {}, 'No accesses: nothing to show.'));
  return h('div', {},
    h('p', {class: 'headline'}, headline(profile)),
    facts(profile),
    profile.notes.length ? h('ul', {class: 'notes'}, profile.notes.map(note => h('li', {}, note))) : null,
    profile.reuse.total > 0 && cachePanel(profile),
    h('div', {class: 'pair-of-cards'},
      profile.reuse.total > 0 && histogramCard('Reuse distance', 'Memory touched between two uses of a block, in powers of two.', profile.reuse, profile.granularity, 'reuse-distance'),
      profile.reuse.bins > 0 && cumulativeCard(profile),
      profile.time && histogramCard('Time distance', 'Accesses from one use of a block to the next.', profile.time, 1, 'time-distance')));
}

// What was measured, and what any cache makes of it.
import {Bar, barChart, lineChart, Tick} from './chart';
import {associativeCurve, blocksOf, Cache, curveAt, CurvePoint, HitTable, missRatioCurve, predict} from './cache';
import {Histogram, octaves, percentile, percentileOf, Profile} from './data';
import {Child, h, replace} from './dom';
import {bytes, count, percent, signed, sizeSpec, span, withError} from './format';
import {change, chosenCache, comparable, current, onChange, view} from './state';
import {link, toCode} from './links';
import {gather, weigh} from './places';
import {behind} from './table';
import {controls, nearestSize} from './controls';

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
  for (const cache of comparable()) high = Math.max(high, cache.bytes / granularity);
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
    bars.push({label: 'invalidated by another thread’s write', tick: 'invalidated', values: [histogram.invalidated / total], infinite: true});
  return bars;
  function bar(low: number, high: number, amount: number, error: number): Bar {
    return {label: high <= 1 ? span(0, granularity) : `${span(low, granularity)} – ${span(high, granularity)}`,
            tick: span(low, granularity), values: [amount / total], error: error / total, weak: error > amount / 2};
  }
}

export function histogramCard(title: string, about: string, histogram: Histogram, granularity: number, name: string, height?: number): HTMLElement {
  const bars = histogramBars(histogram, granularity);
  const peak = bars.reduce((best, bar) => bar.values[0]! > best.values[0]! ? bar : best, bars[0] ?? {label: '', tick: '', values: [0]});
  const weak = bars.some(bar => bar.weak && bar.values[0]! > 0);
  return h('section', {class: 'card'}, h('h3', {}, title), h('p', {class: 'quiet'}, about, weak && ' Grey bars: too few samples.'),
    barChart({
      label: `${title}. Largest: ${peak.label} with ${percent(peak.values[0]!)} of accesses. Use left and right arrows to read values.`,
      series: [{name: 'accesses', color: kColors[0]!}], bars, height, xTitle: granularity === 1 ? 'accesses' : 'memory touched in between',
      tell: bar => [h('b', {}, bar.label), ` ${percent(bar.values[0]!)} of accesses`, (bar.error ?? 0) > 0 ? ` ± ${percent(bar.error!)}` : ''],
    }),
    behind([
      {title: 'distance', value: (bar: Bar) => bar.label, wide: true},
      {title: 'accesses', value: bar => bar.values[0]! * histogram.total, show: bar => count(bar.values[0]! * histogram.total)},
      {title: 'share', value: bar => bar.values[0]!, show: bar => percent(bar.values[0]!), bar: bar => bar.values[0]!},
      {title: 'error', value: bar => bar.error ?? 0, show: bar => (bar.error ?? 0) > 0 ? '± ' + percent(bar.error!) : 'exact'},
    ], bars.filter(bar => bar.values[0]! > 0), {name, caption: title, rowsPerPage: 40}));
}

function figure(name: string, value: Child, note?: Child): HTMLElement {
  return h('div', {class: 'figure-box'}, h('dt', {}, name), h('dd', {}, value, note ? h('small', {}, note) : null));
}

function facts(profile: Profile): HTMLElement {
  const touched = profile.granularity > 1 ? bytes(profile.distinct * profile.granularity) : `${count(profile.distinct)} blocks`;
  const set = profile.report.main_working_set;
  const within = (share: number) => span(percentileOf(profile, share), profile.granularity);
  return h('dl', {class: 'figures'},
    figure('accesses', count(profile.accesses), profile.accessesError || null),
    figure('memory touched', touched, profile.distinctRange || (profile.granularity > 1 ? `${count(profile.distinct)} blocks of ${profile.granularity} B` : null)),
    figure('first touches', percent(profile.reuse.cold / Math.max(1, profile.reuse.total))),
    figure('half the reuses within', within(50)),
    figure('nine in ten within', within(90)),
    figure('main working set', set ? set.size : profile.report.few_samples ? 'too few samples' : 'none', set ? `misses ${percent(set.miss_before, 0)} → ${percent(set.miss_after, 0)}` : null));
}

// Hit rates of the marked caches and the chosen one, and the curve; redrawn as the sliders move. The curve has the ways
// of the chosen cache, so that the dot lies on it.
function cachePanel(profile: Profile, reuse: Histogram): HTMLElement {
  const [low, high] = curveRange([profile]);
  const rates = h('div', {}), answer = h('div', {class: 'answer', 'aria-live': 'polite'}), chart = h('div', {}), behindChart = h('div', {});
  // Exact profiles have this machine's caches simulated, and samples see sets that crowd: that goes first, and the model serves other sizes. A stretch of the run has none.
  const simulated = (cache: Cache) => profile.stretch ? undefined
    : profile.report.caches.find(level => level.simulated && level.bytes === cache.bytes && level.line === cache.line && level.ways === (cache.ways || cache.bytes / cache.line));
  const marked = comparable().map(cache => {
    const level = simulated(cache);
    const model = predict(reuse, cache);
    return {cache, level, model, prediction: level ? {hitRate: level.hit_rate, missRate: level.miss_rate, error: level.error ?? 0} : model};
  });
  const few = profile.report.few_samples;
  const stated = (error: number) => error <= profile.report.most_stated_error;
  const notKnown = `not known within ± ${100 * profile.report.most_stated_error} points: more samples needed`;
  let ways = -1, curve: CurvePoint[] = [];
  const update = () => {
    const cache = chosenCache(), prediction = predict(reuse, cache, new HitTable(cache));
    const whole = cache.ways === 0 || (cache.bytes / cache.line) % cache.ways === 0;
    const nearest = marked.filter(entry => entry.cache.bytes <= view.size).pop();
    if (cache.ways !== ways) {
      ways = cache.ways;
      curve = associativeCurve(reuse, ways, cache.line, low, high);
      replace(behindChart, behind([
        {title: 'bytes', value: (point: CurvePoint) => point.blocks * profile.granularity, show: point => span(point.blocks, profile.granularity)},
        {title: 'miss ratio', value: point => point.missRate, show: point => percent(point.missRate, 4), bar: point => point.missRate},
        {title: 'error', value: point => point.error, show: point => point.error > 0 ? '± ' + percent(point.error) : 'exact'},
      ], missRatioCurve(reuse), {name: 'miss-ratio-curve', caption: 'Miss ratio by size of a fully associative cache', rowsPerPage: 40}));
    }
    replace(answer,
      h('div', {class: 'big'}, h('output', {id: 'hit-rate', 'data-hit-rate': prediction.hitRate, 'data-error': prediction.error}, few ? 'too few samples' : stated(prediction.error) ? withError(prediction.hitRate, prediction.error) : notKnown), few || !stated(prediction.error) ? '' : h('small', {}, ' hits')),
      few || !stated(prediction.error) ? null : h('div', {}, withError(prediction.missRate, prediction.error), ' misses', prediction.error > 0 ? ` ± ${withError(prediction.error, prediction.error)}` : '',
        nearest && nearest.cache.bytes !== cache.bytes
          ? [', ', signed(prediction.missRate - nearest.model.missRate, size => `${(100 * size).toFixed(2)} points`), ` against ${nearest.cache.name}`] : ''),
      few || !simulated(cache) ? null : h('div', {class: 'quiet'}, `By the model of random sets; ${simulated(cache)!.sets}: ${withError(simulated(cache)!.miss_rate, simulated(cache)!.error ?? 0)} misses.`),
      h('div', {class: 'quiet'}, cacheWords(cache), view.threads > 1 ? ` (one of ${view.threads} equal parts of ${bytes(view.size)})` : ''),
      h('div', {class: 'quiet'}, whole ? h('code', {}, `revisit cache PROFILE --cache ${sizeSpec(cache.bytes)}:${cache.ways || 'full'}:${cache.line}`)
        : 'Not a whole number of sets; modelled all the same.'));
    replace(chart, curveChart(profile, curve, low, high, prediction.missRate));
  };
  const rateRow = ({cache, level, prediction}: typeof marked[0]) => h('tr', {},
    h('th', {scope: 'row'}, cache.name), h('td', {}, bytes(cache.bytes)), stated(prediction.error) ? h('td', {}, withError(prediction.hitRate, prediction.error)) : h('td', {colspan: 2, class: 'words'}, notKnown),
    !stated(prediction.error) ? null : h('td', {class: 'bar', style: `--share:${100 * prediction.missRate}%`}, withError(prediction.missRate, prediction.error),
      prediction.error > 0 ? ` ± ${withError(prediction.error, prediction.error)}` : '', level ? h('small', {class: 'quiet'}, ` ${level.sets}`) : ''));
  if (marked.length) rates.append(h('table', {class: 'rates'},
    h('caption', {class: 'unseen'}, 'Hit rates of the marked caches'),
    h('thead', {}, h('tr', {}, ['cache', 'size', 'hits', 'misses'].map(title => h('th', {scope: 'col'}, title)))),
    h('tbody', {}, marked.map(rateRow))));
  for (const {cache, level} of marked) if (level?.conflicts)
    rates.append(h('p', {class: 'quiet'}, `${cache.name}: ${percent(level.model_miss_rate ?? 0)} by the model of random sets; ${level.error ? 'the sampled sets have' : 'the simulation has'} ${level.conflicts}.`));
  if (profile.report.left_out) rates.append(h('p', {class: 'quiet'}, profile.report.left_out + '.'));
  update();
  onChange(what => { if (what === 'cache') update(); });
  return h('section', {class: 'card hero'},
    h('h3', {}, 'Which cache sizes would help?'),
    h('div', {class: 'cache-panel'}, controls(), answer, rates),
    chart, behindChart);
}

function curveChart(profile: Profile, curve: CurvePoint[], low: number, high: number, missRate: number): HTMLElement {
  const perBlock = profile.granularity, chosen = chosenCache(), at = chosen.bytes / perBlock;
  const name = chosen.ways === 0 ? 'fully associative' : `${chosen.ways}-way`;
  return lineChart({
    label: `Miss ratio by cache size, ${name}, from ${percent(curveAt(curve, low))} at ${span(low, perBlock)} to ${percent(curveAt(curve, high))} at ${span(high, perBlock)}. Use left and right arrows to read values.`,
    lines: [{name, color: kColors[0]!,
             points: curve.map(point => ({x: Math.max(low, point.blocks), y: point.missRate, error: point.error})).concat(
               [{x: high, y: curveAt(curve, high), error: curve.length ? curve[curve.length - 1]!.error : 0}])}],
    marks: [...comparable().map(cache => ({x: cache.bytes / perBlock, label: cache.name})), {x: at, label: 'chosen', chosen: true}],
    dots: [{x: at, y: missRate, label: 'the chosen cache'}],
    low, high, ticks: sizeTicks(low, high, perBlock), xTitle: `size of a ${name} cache`, yTitle: 'misses, share of accesses', height: 250,
    tell: blocks => [h('b', {}, span(blocks, perBlock)), ` misses ${percent(curveAt(curve, blocks))}; click to choose`],
    pick: blocks => change({size: nearestSize(blocks * perBlock), threads: 1}, 'cache'),
  });
}

function cumulativeCard(profile: Profile, reuse: Histogram): HTMLElement {
  const finite = Math.max(1e-300, reuse.total - reuse.cold - reuse.invalidated);
  const curve = missRatioCurve(reuse);
  const within = (point: {missRate: number}) => (1 - point.missRate) * reuse.total / finite;
  const [low, high] = curveRange([profile]);
  const shares = [0.5, 0.7, 0.8, 0.9, 0.95, 0.99].map(share => ({share, distance: Math.round(percentile(reuse, share))}));
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

// The first screen: what the terminal leads with, what to do first, and the worst places, each one click from its cause.
function first(profile: Profile): HTMLElement {
  const level = profile.report.caches[profile.report.caches.length > 1 ? 1 : 0], top = level?.advice[0], sites = profile.report.sites ?? [];
  return h('div', {class: 'pair-of-cards'},
    sites.length ? h('section', {class: 'card'}, h('h3', {}, `Most misses in ${profile.report.focus!.name}`),
      h('ol', {class: 'worst'}, sites.slice(0, 4).map(one => h('li', {}, h('b', {}, percent(one.share, 1)), ' ',
        profile.siteById.has(one.id) ? link(one.place, toCode(profile.siteById.get(one.id)!)) : one.place,
        one.few_samples ? h('span', {class: 'weak'}, ' too few samples') : '',
        one.data || one.reason ? h('div', {class: 'quiet'}, [[one.data, one.member].filter(text => text).join(', '), one.reason].filter(text => text).join(': ')) : '')))) : null,
    top ? h('section', {class: 'card'}, h('h3', {}, 'What to do first'),
      profile.report.few_samples ? h('p', {class: 'warning'}, 'Too few samples for advice.')
        : [h('p', {}, top.rule === 'nothing' ? '' : [h('span', {class: 'rule'}, top.rule), ' '], top.what),
           top.gain_text && h('p', {class: 'gain'}, 'Gain: ', top.gain_text), top.help?.length ? h('p', {}, 'Try: ', top.help[0]!) : null,
           h('p', {}, link('All advice', {tab: 'advice'}))]) : null);
}

// In a stretch of the run: the lines with most misses there.
function worstHere(profile: Profile): Child {
  const hits = new HitTable(chosenCache()), places = gather(profile, 'line'), all = Math.max(1e-300, weigh(places, hits));
  const worst = places.sort((a, b) => b.misses - a.misses).slice(0, 4).filter(place => place.misses >= 0.5);
  return worst.length ? h('section', {class: 'card'}, h('h3', {}, `Most misses in ${cacheWords(hits.cache)}, in these windows`),
    h('ol', {class: 'worst'}, worst.map(place => h('li', {}, h('b', {}, percent(place.misses / all, 1)), ' ', link(`${place.name} ${place.detail}`, toCode(place.sites[0]!)),
      place.sites[0]!.data ? h('div', {class: 'quiet'}, place.sites[0]!.data) : '')))) : null;
}

// TLBs, where pages were counted beside lines, and what huge pages would do.
function pagesCard(profile: Profile): Child {
  const {pages, huge_pages, typical_tlbs, line_use} = profile.report;
  if (!pages?.length && !line_use) return null;
  return h('section', {class: 'card'}, h('h3', {}, pages?.length ? 'Pages and lines' : 'Line use'),
    huge_pages && h('p', {}, huge_pages),
    pages?.length ? h('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Hit rates of TLBs'}, h('table', {class: 'rates'}, h('caption', {class: 'unseen'}, 'Hit rates of TLBs'),
      h('thead', {}, h('tr', {}, ['pages', 'touched', 'TLB', 'hits', 'misses'].map(title => h('th', {scope: 'col'}, title)))),
      h('tbody', {}, pages.map(size => size.tlbs.map(tlb => h('tr', {}, h('th', {scope: 'row'}, bytes(size.bytes)), h('td', {}, count(size.touched)),
        h('td', {}, `${tlb.entries} entries${tlb.ways < tlb.entries ? `, ${tlb.ways}-way` : ''}`), h('td', {}, percent(tlb.hit_rate)),
        h('td', {class: 'bar', style: `--share:${100 * tlb.miss_rate}%`}, percent(tlb.miss_rate)))))))) : null,
    typical_tlbs && h('p', {class: 'quiet'}, 'Typical TLBs: those of the machine that wrote this page are not known.'),
    line_use && h('p', {}, 'Line use: ', line_use));
}

export function overview(): HTMLElement {
  const profile = current();
  if (profile.reuse.total <= 0 && !profile.time) return h('div', {}, h('p', {}, 'No accesses: nothing to show.'));
  const reuse = profile.reuse;
  return h('div', {},
    profile.stretch ? null : h('p', {class: 'headline' + (profile.report.few_samples ? ' warning' : '')}, profile.report.lead),
    profile.stretch ? worstHere(profile) : first(profile),
    reuse.total > 0 && cachePanel(profile, reuse),
    facts(profile),
    h('div', {class: 'pair-of-cards'}, pagesCard(profile),
      reuse.total > 0 && histogramCard('Reuse distance', 'Memory touched between two uses of a block, in powers of two.', reuse, profile.granularity, 'reuse-distance'),
      reuse.bins > 0 && cumulativeCard(profile, reuse),
      profile.time && histogramCard('Time distance', 'Accesses from one use of a block to the next.', profile.time, 1, 'time-distance')));
}

// Several profiles over each other: the curves, the distances, the figures, and what moved where.
import {barChart, lineChart} from './chart';
import {curveAt, HitTable, missRatioCurve, predict} from './cache';
import {percentileOf, Profile, profiles} from './data';
import {h, replace} from './dom';
import {bytes, count, percent, signed, span} from './format';
import {cacheWords, curveRange, histogramBars, kColors, sizeTicks} from './overview';
import {compactControls} from './controls';
import {difference} from './flame';
import {gather, weigh} from './places';
import {chosenCache, comparable, onChange} from './state';
import {behind, table} from './table';

interface Figure { name: string; values: string[]; numbers: number[] }

// Shares of distances lined up by powers of two.
function sharedBars(): {labels: string[]; ticks: string[]; values: number[][]; infinite: boolean[]} {
  const rows = new Map<string, {tick: string; values: number[]; order: number; infinite: boolean}>();
  profiles.forEach((profile, k) => histogramBars(profile.reuse, profile.granularity).forEach((bar, i) => {
    const row = rows.get(bar.label) ?? {tick: bar.tick, values: profiles.map(() => 0), order: bar.infinite ? 1000 + i : i, infinite: !!bar.infinite};
    row.values[k] = bar.values[0]!;
    rows.set(bar.label, row);
  }));
  const ordered = [...rows].sort((a, b) => a[1].order - b[1].order);
  return {labels: ordered.map(([label]) => label), ticks: ordered.map(([, row]) => row.tick), values: ordered.map(([, row]) => row.values), infinite: ordered.map(([, row]) => row.infinite)};
}

// Hit rates of this machine's caches, and S, are those that `revisit report` and `revisit diff` print.
function figures(hits: HitTable): Figure[] {
  const row = (name: string, value: (profile: Profile, index: number) => number, show: (value: number) => string): Figure => {
    const numbers = profiles.map(value);
    return {name, numbers, values: numbers.map(value => show(value))};
  };
  const granularity = profiles[0]!.granularity;
  return [
    row('accesses', profile => profile.accesses, count),
    row('blocks touched', profile => profile.distinct, count),
    row('first touches', profile => profile.reuse.cold / Math.max(1, profile.reuse.total), percent),
    row('half within', profile => percentileOf(profile, 50) * profile.granularity, value => granularity === 1 ? count(value) : bytes(value)),
    row('nine in ten within', profile => percentileOf(profile, 90) * profile.granularity, value => granularity === 1 ? count(value) : bytes(value)),
    ...comparable().map(cache => row(`${cache.name} hits`, profile => profile.report.caches.find(level => level.name === cache.name)?.hit_rate ?? predict(profile.reuse, cache).hitRate, percent)),
    row('chosen cache hits', profile => predict(profile.reuse, hits.cache, hits).hitRate, percent),
    row(`S against ${profiles[0]!.label}`, (profile, index) => index === 0 ? 1 : profile.similarity ?? -1, value => value < 0 ? '–' : value.toFixed(4)),
  ];
}

function moved(hits: HitTable, by: 'function' | 'line' | 'data', other: number): {name: string; before: number; after: number}[] {
  const rows = new Map<string, {name: string; before: number; after: number}>();
  const take = (profile: Profile, slot: 'before' | 'after') => {
    const add = (name: string, misses: number) => {
      const row = rows.get(name) ?? {name, before: 0, after: 0};
      row[slot] += misses;
      rows.set(name, row);
    };
    if (by === 'data') profile.objects.forEach(object => add(`${object.name || 'unnamed'} (${object.kind})`, hits.misses(object.reuse)));
    else {
      const places = gather(profile, by);
      weigh(places, hits);
      places.forEach(place => add(`${place.name} ${place.detail}`.trim(), place.misses));
    }
  };
  take(profiles[0]!, 'before');
  take(profiles[other]!, 'after');
  return [...rows.values()].filter(row => Math.abs(row.after - row.before) >= 0.5);
}

export function compare(): HTMLElement {
  const granularity = profiles[0]!.granularity;
  const differ = profiles.some(profile => profile.granularity !== granularity);
  const [low, high] = curveRange(profiles);
  const curves = profiles.map(profile => missRatioCurve(profile.reuse));
  const bars = sharedBars();
  const missAt = (i: number, blocks: number) => curveAt(curves[i]!, blocks * granularity / profiles[i]!.granularity);
  const series = profiles.map((profile, i) => ({name: profile.label, color: kColors[i % kColors.length]!}));
  const numbers = h('div', {}), moves = h('div', {}), flames = h('div', {});
  let resting = 0;
  const drawFlames = () => {
    const hits = new HitTable(chosenCache());
    replace(flames, profiles.slice(1).map(profile => profiles[0]!.sites.length && profile.sites.length ? h('section', {class: 'card'},
      h('h3', {}, `Call paths: ${profiles[0]!.label} → ${profile.label}`),
      h('p', {class: 'quiet'}, 'As wide as the larger of the two. Red: more misses; green: fewer; grey: no change. The stronger, the larger the change of the box.'),
      difference(profiles[0]!, profile, hits)) : null));
  };
  const update = () => {
    const hits = new HitTable(chosenCache());
    replace(numbers, table<Figure>([
      {title: 'figure', wide: true, value: row => row.name},
      ...profiles.map((profile, i) => ({title: profile.label, value: (row: Figure) => row.numbers[i]!, show: (row: Figure) => row.values[i]!})),
    ], figures(hits), {name: 'compare', caption: 'Figures side by side', rowsPerPage: 40}));
    replace(moves, profiles.slice(1).map((profile, i) => (['function', 'line', 'data'] as const).map(by => {
      const rows = moved(hits, by, i + 1);
      const most = Math.max(1, ...rows.map(row => Math.abs(row.after - row.before)));
      return rows.length > 0 && h('section', {class: 'card'}, h('h3', {}, `What moved by ${by}: ${profiles[0]!.label} → ${profile.label}`),
        h('p', {class: 'quiet'}, `Red: more misses; green: fewer. In a cache of ${cacheWords(hits.cache)}.`),
        table([
          {title: by, wide: true, value: (row: typeof rows[0]) => row.name, show: row => h('span', {class: 'name'}, row.name)},
          {title: 'change', value: row => Math.abs(row.after - row.before), show: row => signed(row.after - row.before, count), bar: row => Math.abs(row.after - row.before) / most, tone: row => row.after < row.before ? 'gain' : 'loss'},
          {title: 'before', value: row => row.before, show: row => count(row.before)},
          {title: 'after', value: row => row.after, show: row => count(row.after)},
        ], rows, {name: `moved-by-${by}`, caption: `What moved by ${by}`, sort: 1, rowsPerPage: 8}));
    })));
  };
  update();
  drawFlames();
  onChange(what => {
    if (what !== 'cache') return;
    update();
    clearTimeout(resting);
    resting = window.setTimeout(drawFlames, 120);
  });
  return h('div', {},
    differ && h('p', {class: 'warning'}, 'These profiles count blocks of different sizes; only sizes in bytes compare.'),
    h('div', {class: 'card toolbar'}, compactControls()), moves,
    flames, h('section', {class: 'card'}, h('h3', {}, 'Side by side'), numbers),
    h('section', {class: 'card'}, h('h3', {}, 'Miss ratio by cache size'),
      lineChart({
        label: 'Miss ratio curves of ' + profiles.map(profile => profile.label).join(', '),
        lines: curves.map((curve, i) => ({...series[i]!, dashed: i % 2 === 1,
          points: curve.map(point => ({x: Math.max(low, point.blocks * profiles[i]!.granularity / granularity), y: point.missRate, error: point.error})).concat(
            [{x: high, y: curve.length ? curve[curve.length - 1]!.missRate : 0, error: 0}])})),
        marks: comparable().map(cache => ({x: cache.bytes / granularity, label: cache.name})),
        low, high, ticks: sizeTicks(low, high, granularity), xTitle: 'cache size', yTitle: 'misses, share of accesses', height: 300,
        tell: blocks => [h('b', {}, span(blocks, granularity)), ' misses ',
          profiles.map((profile, i) => `${profile.label} ${percent(missAt(i, blocks))}`).join(', ')],
      }),
      behind<number>([
        {title: 'cache size in bytes', value: blocks => blocks * granularity, show: blocks => span(blocks, granularity)},
        ...profiles.map((profile, i) => ({title: profile.label, value: (blocks: number) => missAt(i, blocks), show: (blocks: number) => percent(missAt(i, blocks))})),
      ], Array.from({length: Math.round(Math.log2(high / low)) + 1}, (_, i) => low * 2 ** i),
      {name: 'compare-curves', caption: 'Miss ratio by cache size, side by side', rowsPerPage: 40})),
    h('section', {class: 'card'}, h('h3', {}, 'Reuse distances'),
      barChart({
        label: 'Reuse distances of the profiles, side by side', series,
        bars: bars.labels.map((label, i) => ({label, tick: bars.ticks[i]!, values: bars.values[i]!, infinite: bars.infinite[i]!})), xTitle: 'memory touched in between',
        tell: bar => [h('b', {}, bar.label), ' ', bar.values.map((value, i) => `${profiles[i]!.label} ${percent(value)}`).join(', ')],
      }),
      behind([
        {title: 'distance', wide: true, value: (row: {label: string; values: number[]}) => row.label},
        ...profiles.map((profile, i) => ({title: profile.label, value: (row: {label: string; values: number[]}) => row.values[i]!, show: (row: {label: string; values: number[]}) => percent(row.values[i]!)})),
      ], bars.labels.map((label, i) => ({label, values: bars.values[i]!})), {name: 'compare-distances', caption: 'Reuse distances side by side', rowsPerPage: 40})));
}

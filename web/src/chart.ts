// Charts as SVG, drawn at the width they have. Each has axes with units, a readout that follows the
// pointer or the arrow keys, and a sentence for those who do not see it.
import {Child, h, replace, responsive, s} from './dom';

export interface Tick { at: number; label: string }

export interface Mark { x: number; label: string; chosen?: boolean }

export interface Line {
  name: string;
  color: string;
  points: {x: number; y: number; error?: number}[];
  dashed?: boolean;
}

const kMargin = {left: 46, right: 14, top: 24, bottom: 36};
const kHeight = 250;

interface Plot {
  svg: SVGElement;
  width: number;
  height: number;
  left: number;
  right: number;
  top: number;
  bottom: number;
}

function plot(width: number, height: number, label: string, left = kMargin.left): Plot {
  const svg = s('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', tabindex: 0, 'aria-label': label});
  return {svg, width, height, left, right: width - kMargin.right, top: kMargin.top, bottom: height - kMargin.bottom};
}

function shareAxis(p: Plot, most: number, y: (value: number) => number): void {
  const step = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5].find(step => most / step <= 5) ?? 0.5;
  for (let value = 0; value <= most + 1e-9; value += step) {
    p.svg.append(s('line', {class: 'grid', x1: p.left, x2: p.right, y1: y(value), y2: y(value)}),
      s('text', {class: 'tick', x: p.left - 6, y: y(value) + 4, 'text-anchor': 'end'}, `${Number((100 * value).toPrecision(3))} %`));
  }
}

// As many labels as there is room for.
function tickRow(p: Plot, ticks: Tick[], x: (at: number) => number): void {
  const room = Math.max(1, Math.floor((p.right - p.left) / 62));
  const every = Math.max(1, Math.ceil(ticks.length / room));
  ticks.forEach((tick, i) => {
    if (i % every !== 0) return;
    const at = x(tick.at);
    p.svg.append(s('line', {class: 'axis', x1: at, x2: at, y1: p.bottom, y2: p.bottom + 4}),
      s('text', {class: 'tick', x: at, y: p.bottom + 16, 'text-anchor': 'middle'}, tick.label));
  });
}

function axisTitle(p: Plot, text: string, yTitle = ''): void {
  if (yTitle) p.svg.append(s('text', {class: 'axis-title', x: p.left, y: p.top - 8}, yTitle));
  p.svg.append(s('text', {class: 'axis-title', x: p.right, y: p.height - 3, 'text-anchor': 'end'}, text));
}

// Readout under the chart; `places` are pixel positions that can be asked about.
function readout(p: Plot, places: number[], tell: (index: number) => Child, cursor: boolean, pick?: (index: number) => void): HTMLElement {
  const output = h('output', {class: 'readout', 'aria-live': 'polite'}, ' ');
  const line = s('line', {class: 'cursor', y1: p.top, y2: p.bottom, visibility: 'hidden'});
  if (cursor) p.svg.append(line);
  let current = -1;
  const go = (index: number) => {
    if (places.length === 0) return;
    current = Math.max(0, Math.min(places.length - 1, index));
    line.setAttribute('x1', String(places[current]));
    line.setAttribute('x2', String(places[current]));
    line.setAttribute('visibility', 'visible');
    replace(output, tell(current));
  };
  p.svg.addEventListener('pointermove', (event: any) => {
    const x = event.clientX - p.svg.getBoundingClientRect().left;
    let best = 0;
    places.forEach((place, i) => { if (Math.abs(place - x) < Math.abs(places[best]! - x)) best = i; });
    go(best);
  });
  p.svg.addEventListener('pointerleave', () => {
    line.setAttribute('visibility', 'hidden');
    replace(output, ' ');
  });
  if (pick) {
    p.svg.classList.add('pickable');
    p.svg.addEventListener('click', () => { if (current >= 0) pick(current); });
  }
  p.svg.addEventListener('keydown', (event: any) => {
    if (pick && current >= 0 && (event.key === 'Enter' || event.key === ' ')) {
      event.preventDefault();
      pick(current);
    }
    if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
    event.preventDefault();
    go(event.key === 'ArrowLeft' ? current - 1 : current + 1);
  });
  return output;
}

export interface LineChart {
  label: string;
  lines: Line[];
  marks?: Mark[];
  low: number;   // x range; the axis is logarithmic
  high: number;
  ticks: Tick[];
  xTitle: string;
  yTitle: string;
  tell: (x: number) => Child;
  dots?: {x: number; y: number; label: string}[];
  height?: number;
  pick?: (x: number) => void;
}

export function lineChart(chart: LineChart): HTMLElement {
  return responsive('chart', width => {
    const p = plot(width, chart.height ?? kHeight, chart.label);
    const x = (value: number) => p.left + (p.right - p.left) *
      Math.log(Math.max(value, chart.low) / chart.low) / Math.log(chart.high / chart.low);
    const y = (value: number) => p.bottom - (p.bottom - p.top) * value;
    shareAxis(p, 1, y);
    tickRow(p, chart.ticks, x);
    axisTitle(p, chart.xTitle, chart.yTitle);
    drawMarks(p, chart.marks ?? [], x, chart);
    for (const line of chart.lines) {
      const inside = line.points.filter(point => point.x <= chart.high);
      if (line.points.some(point => (point.error ?? 0) > 0)) {
        const upper = inside.map(point => `${x(point.x)},${y(Math.min(1, point.y + point.error!))}`);
        const lower = inside.map(point => `${x(point.x)},${y(Math.max(0, point.y - point.error!))}`).reverse();
        p.svg.append(s('polygon', {class: 'band', points: [...upper, ...lower].join(' '), fill: line.color}));
      }
      p.svg.append(s('polyline', {class: 'line' + (line.dashed ? ' dashed' : ''), stroke: line.color,
        points: inside.map(point => `${x(point.x).toFixed(1)},${y(point.y).toFixed(1)}`).join(' ')}));
    }
    for (const dot of chart.dots ?? [])
      p.svg.append(s('circle', {class: 'dot', cx: x(dot.x), cy: y(dot.y), r: 5}, s('title', {}, dot.label)));
    const places: number[] = [];
    for (let at = p.left; at <= p.right; at += 4) places.push(at);
    const back = (at: number) => chart.low * (chart.high / chart.low) ** ((at - p.left) / (p.right - p.left));
    const output = readout(p, places, index => chart.tell(back(places[index]!)), true, chart.pick && (index => chart.pick!(back(places[index]!))));
    return h('div', {}, p.svg, legend(chart.lines), output);
  });
}

function drawMarks(p: Plot, marks: Mark[], x: (value: number) => number, chart: LineChart): void {
  let previous = -100, level = 0;
  for (const mark of [...marks].sort((a, b) => a.x - b.x)) {
    if (mark.x < chart.low || mark.x > chart.high) continue;
    const at = x(mark.x);
    level = at - previous < 9 * mark.label.length ? level + 1 : 0;
    previous = at;
    const flip = at > p.right - 7 * mark.label.length - 8;
    p.svg.append(s('line', {class: mark.chosen ? 'mark chosen' : 'mark', x1: at, x2: at, y1: p.top, y2: p.bottom}),
      s('text', {class: mark.chosen ? 'mark-label chosen' : 'mark-label', x: at + (flip ? -4 : 4), y: p.top + 9 + 13 * level,
                 'text-anchor': flip ? 'end' : 'start'}, mark.label));
  }
}

export function legend(lines: {name: string; color: string}[]): Child {
  if (lines.length < 2) return null;
  return h('ul', {class: 'legend'}, lines.map(line =>
    h('li', {}, h('span', {class: 'swatch', style: `background:${line.color}`}), line.name)));
}

export interface Bar {
  label: string;     // of the whole bar
  tick: string;      // under it
  values: number[];  // one a series
  error?: number;
  weak?: boolean;
  infinite?: boolean;  // cold and invalidated: stands apart
  chosen?: boolean;
}

export interface BarChart {
  label: string;
  series: {name: string; color: string}[];
  bars: Bar[];
  xTitle: string;
  tell: (bar: Bar) => Child;
  yTitle?: string;
  left?: number;  // margin, to stand above a heat map
  height?: number;
  marks?: {between: number; label: string}[];  // before the bar of that (fractional) index
  pick?: (bar: number) => void;
}

export function barChart(chart: BarChart): HTMLElement {
  return responsive('chart', width => {
    const p = plot(width, chart.height ?? kHeight, chart.label, chart.left);
    const most = Math.max(1e-9, ...chart.bars.flatMap(bar => bar.values.map(value => value + (bar.error ?? 0)))) * 1.05;
    const top = Math.min(1, most);
    const y = (value: number) => p.bottom - (p.bottom - p.top) * Math.min(1, value / top);
    shareAxis(p, top, y);
    const apart = chart.bars.some(bar => bar.infinite) ? 0.6 : 0;
    const slot = (p.right - p.left) / (chart.bars.length + apart);
    const places: number[] = [];
    const every = Math.max(1, Math.ceil(46 / slot));
    chart.bars.forEach((bar, i) => {
      const left = p.left + (i + (bar.infinite ? apart : 0)) * slot;
      places.push(left + slot / 2);
      const gap = Math.min(3, slot * 0.12), each = (slot - 2 * gap) / bar.values.length;
      bar.values.forEach((value, k) => {
        if (value <= 0) return;
        p.svg.append(s('rect', {class: 'column' + (bar.weak ? ' weak' : '') + (bar.chosen ? ' chosen' : ''), x: left + gap + k * each, width: Math.max(1, each - 0.5),
          y: Math.min(y(value), p.bottom - 1), height: Math.max(1, p.bottom - y(value)),
          fill: bar.infinite && chart.series.length === 1 ? 'var(--infinite)' : chart.series[k]!.color}));
      });
      if ((bar.error ?? 0) > 0 && bar.values.length === 1) {
        const middle = left + slot / 2, value = bar.values[0]!;
        const low = y(Math.max(0, value - bar.error!)), high = y(value + bar.error!);
        p.svg.append(s('path', {class: 'whisker', d: `M${middle},${low}V${high}M${middle - 3},${high}h6M${middle - 3},${low}h6`}));
      }
      if (bar.infinite || i % every === 0)
        p.svg.append(s('text', {class: 'tick', x: left + slot / 2, y: p.bottom + 16, 'text-anchor': 'middle'}, bar.tick));
    });
    for (const mark of chart.marks ?? []) {
      const at = p.left + mark.between * slot;
      if (at > p.right) continue;
      p.svg.append(s('line', {class: 'mark', x1: at, x2: at, y1: p.top, y2: p.bottom}),
        s('text', {class: 'mark-label', x: at + 4, y: p.top + 9}, mark.label));
    }
    axisTitle(p, chart.xTitle, chart.yTitle ?? 'share of accesses');
    const output = readout(p, places, index => chart.tell(chart.bars[index]!), true, chart.pick);
    return h('div', {}, p.svg, legend(chart.series), output);
  });
}

export interface HeatMap {
  label: string;
  columns: number;
  rows: string[];          // bottom first
  value: (column: number, row: number) => number;  // 0 … 1
  columnTicks: Tick[];     // `at` in columns
  xTitle: string;
  tell: (column: number) => Child;
}

export const kHeatLeft = 92;

export function heatMap(chart: HeatMap): HTMLElement {
  return responsive('chart', width => {
    const height = Math.max(160, 40 + 14 * chart.rows.length);
    const p = plot(width, height, chart.label, kHeatLeft);
    const cellWidth = (p.right - p.left) / chart.columns, cellHeight = (p.bottom - p.top) / chart.rows.length;
    for (let column = 0; column < chart.columns; ++column)
      for (let row = 0; row < chart.rows.length; ++row) {
        const value = chart.value(column, row);
        if (value <= 0) continue;
        // A power below one shows small shares beside large ones.
        p.svg.append(s('rect', {x: p.left + column * cellWidth, y: p.bottom - (row + 1) * cellHeight, width: cellWidth + 0.3,
          height: cellHeight + 0.3, fill: 'var(--heat)', 'fill-opacity': Math.max(0.08, value ** 0.4).toFixed(3)}));
      }
    const every = Math.max(1, Math.ceil(13 / cellHeight));
    chart.rows.forEach((label, row) => {
      const top = chart.rows.length - 1;  // always told; what is next to it gives way
      if (row === top || (row % every === 0 && row + every <= top))
        p.svg.append(s('text', {class: 'tick', x: p.left - 6, y: p.bottom - (row + 0.5) * cellHeight + 4, 'text-anchor': 'end'}, label));
    });
    tickRow(p, chart.columnTicks, at => p.left + at * cellWidth);
    axisTitle(p, chart.xTitle);
    const places = Array.from({length: chart.columns}, (_, column) => p.left + (column + 0.5) * cellWidth);
    return h('div', {}, p.svg, readout(p, places, chart.tell, true));
  });
}

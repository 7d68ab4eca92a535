// The sliders: size, ways, threads that share. They are the same on every tab. Lines are the profile's blocks.
import {freshId, h, replace} from './dom';
import {bytes} from './format';
import {change, comparable, onChange, view} from './state';

const kSizes: number[] = [];
for (let power = 9; power <= 36; ++power) kSizes.push(2 ** power, 1.5 * 2 ** power);
const kWays = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 64, 0];
const kThreads = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128];

// The step of the size slider next to a size.
export const nearestSize = (bytes: number) =>
  kSizes.reduce((best, size) => Math.abs(Math.log(size / bytes)) < Math.abs(Math.log(best / bytes)) ? size : best, kSizes[0]!);

interface Slider { name: 'size' | 'ways' | 'threads'; title: string; steps: number[]; show: (value: number) => string; help: string }
const kSliders: Slider[] = [
  {name: 'size', title: 'Size', steps: kSizes, show: bytes, help: 'the whole cache'},
  {name: 'ways', title: 'Ways', steps: kWays, show: value => value === 0 ? 'full' : String(value), help: 'blocks per set; full: any block anywhere'},
  {name: 'threads', title: 'Shared by', steps: kThreads, show: value => value === 1 ? '1 thread' : `${value} threads`, help: 'each is taken to have an equal part'},
];

// A value that is not a step of its own (this machine's odd cache, a link) becomes one.
function stepsWith(slider: Slider, value: number): number[] {
  if (slider.steps.includes(value)) return slider.steps;
  const order = (step: number) => slider.name === 'ways' && step === 0 ? Infinity : step;
  return [...slider.steps, value].sort((a, b) => order(a) - order(b));
}

function row(slider: Slider): HTMLElement {
  let steps = stepsWith(slider, view[slider.name]);
  const id = freshId(slider.name);
  const output = h('output', {for: id}, slider.show(view[slider.name]));
  const input = h('input', {id, type: 'range', min: 0, max: steps.length - 1, step: 1, 'data-slider': slider.name,
    'aria-valuetext': slider.show(view[slider.name]), title: slider.help,
    oninput: () => change({[slider.name]: steps[Number(input.value)]!}, 'cache')}) as HTMLInputElement;
  const follow = () => {
    steps = stepsWith(slider, view[slider.name]);
    input.max = String(steps.length - 1);
    input.value = String(steps.indexOf(view[slider.name]));
    input.setAttribute('aria-valuetext', slider.show(view[slider.name]));
    replace(output, slider.show(view[slider.name]));
  };
  follow();
  onChange(follow);
  return h('div', {class: 'slider'}, h('label', {for: id}, slider.title), input, output);
}

function presets(): HTMLElement | null {
  const known = comparable();
  if (!known.length) return null;
  const buttons = known.map(cache => ({cache, button: h('button', {type: 'button',
    onclick: () => change({size: cache.bytes, ways: cache.ways, threads: 1}, 'cache')}, cache.name)}));
  const follow = () => buttons.forEach(({cache, button}) =>
    button.setAttribute('aria-pressed', String(cache.bytes === view.size && cache.ways === view.ways && view.threads === 1)));
  follow();
  onChange(follow);
  return h('div', {class: 'presets segments', role: 'group', 'aria-label': 'Caches of the machine'}, buttons.map(({button}) => button));
}

export function controls(): HTMLElement {
  return h('div', {class: 'controls', role: 'group', 'aria-label': 'The chosen cache'}, kSliders.map(row), presets());
}

// One line: the machine's caches and the size; the other sliders on demand.
export function compactControls(): HTMLElement {
  return h('div', {class: 'controls compact', role: 'group', 'aria-label': 'The chosen cache'},
    h('span', {class: 'quiet'}, 'Misses in'), presets(), row(kSliders[0]!),
    h('details', {}, h('summary', {}, 'ways, sharing'), h('div', {class: 'more'}, kSliders.slice(1).map(row))));
}

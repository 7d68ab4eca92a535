// The sliders: size, ways, line, threads that share. They are the same on every tab.
import {caches} from './data';
import {freshId, h, replace} from './dom';
import {bytes} from './format';
import {change, onChange, view} from './state';

const kSizes: number[] = [];
for (let power = 9; power <= 36; ++power) kSizes.push(2 ** power, 1.5 * 2 ** power);
const kWays = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 64, 0];
const kLines = [1, 8, 16, 32, 64, 128, 256, 512, 1024, 4096];
const kThreads = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128];

interface Slider { name: 'size' | 'ways' | 'line' | 'threads'; title: string; steps: number[]; show: (value: number) => string; help: string }
const kSliders: Slider[] = [
  {name: 'size', title: 'Size', steps: kSizes, show: bytes, help: 'the whole cache'},
  {name: 'ways', title: 'Ways', steps: kWays, show: value => value === 0 ? 'full' : String(value), help: 'blocks a set holds; full: any block anywhere'},
  {name: 'line', title: 'Line', steps: kLines, show: value => `${value} B`, help: 'bytes of a cache line'},
  {name: 'threads', title: 'Sharing', steps: kThreads, show: value => value === 1 ? '1 thread' : `${value} threads`, help: 'each is taken to have an equal part'},
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

export function controls(): HTMLElement {
  return h('div', {class: 'controls', role: 'group', 'aria-label': 'The chosen cache'},
    kSliders.map(row),
    caches.length ? h('div', {class: 'presets'}, caches.map(cache =>
      h('button', {type: 'button', onclick: () => change({size: cache.bytes, ways: cache.ways, line: cache.line, threads: 1}, 'cache')}, cache.name))) : null);
}

// What is looked at, kept in the URL's fragment so that a link shows the same view.
import {caches, profiles} from './data';
import {Cache} from './cache';

export interface View {
  tab: string;
  profile: number;
  size: number;
  ways: number;  // 0 = full
  line: number;
  threads: number;  // that share the cache, each taken to have an equal part
  by: string;
  filter: string;
  pick: string;
}

const kTexts = ['tab', 'by', 'filter', 'pick'] as const;
const kNumbers = ['profile', 'size', 'ways', 'line', 'threads'] as const;

export const view: View =
  {tab: 'overview', profile: 0, size: 2 ** 20, ways: 8, line: 64, threads: 1, by: 'line', filter: '', pick: ''};
let first: View = {...view};

type Listener = (what: 'view' | 'cache') => void;
let listeners: Listener[] = [];
export const onChange = (listener: Listener) => { listeners.push(listener); };
// A new view starts with none: what the old one drew is gone.
export const forgetListeners = () => { listeners = []; };
const tell = (what: 'view' | 'cache') => [...listeners].forEach(listener => listener(what));

export function chosenCache(): Cache {
  const bytes = Math.max(view.line, Math.floor(view.size / view.threads / view.line) * view.line);
  return {name: 'chosen', bytes, ways: view.ways, line: view.line};
}

export function start(): void {
  // The second level is where it starts to hurt, as in the terminal report.
  const cache = caches[1] ?? caches[0];
  if (cache) Object.assign(view, {size: cache.bytes, ways: cache.ways, line: cache.line});
  else view.line = profiles[0]?.granularity ?? 64;
  first = {...view};
  read();
  window.addEventListener('hashchange', () => {
    read();
    tell('view');
  });
}

function read(): void {
  Object.assign(view, first);
  const fields = new URLSearchParams(location.hash.replace(/^#/, ''));
  for (const name of kTexts) if (fields.has(name)) view[name] = fields.get(name)!;
  for (const name of kNumbers) {
    const value = Number(fields.get(name) ?? NaN);
    if (Number.isFinite(value) && value >= 0) view[name] = Math.floor(value);
  }
  view.profile = Math.min(view.profile, profiles.length - 1);
  view.line = Math.max(1, view.line);
  view.threads = Math.max(1, view.threads);
  view.size = Math.max(view.line, view.size);
}

function fragment(): string {
  const fields = new URLSearchParams();
  for (const name of [...kTexts, ...kNumbers])
    if (view[name] !== first[name]) fields.set(name, String(view[name]));
  return '#' + fields.toString();
}

let pending = 0;
export function change(part: Partial<View>, what: 'view' | 'cache' = 'view'): void {
  const tabChanged = part.tab !== undefined && part.tab !== view.tab;
  Object.assign(view, part);
  // Moving a slider must not fill the history, nor run into the browser's limit on it.
  if (tabChanged) history.pushState(null, '', fragment());
  else {
    clearTimeout(pending);
    pending = window.setTimeout(() => history.replaceState(null, '', fragment()), 150);
  }
  tell(what);
}

// What is looked at, kept in the URL's fragment so that a link shows the same view, and back and forward work.
import {caches, Profile, profiles, stretchOf} from './data';
import {Cache} from './cache';

export interface View {
  tab: string;
  profile: number;
  size: number;
  ways: number;     // 0 = full
  threads: number;  // that share the cache, each taken to have an equal part
  pane: string;     // Code: list, source or flame
  by: string;
  filter: string;
  pick: string;     // the chosen place, datum, thread or cache line, by its key
  pair: number;     // the chosen pair of the place, by its index in the profile; -1: the worst
  level: string;    // whose advice is shown; empty: the second
  from: number;     // a stretch of phases; both -1: the whole run
  to: number;
}

const kTexts = ['tab', 'pane', 'by', 'filter', 'pick', 'level'] as const;
const kNumbers = ['profile', 'size', 'ways', 'threads', 'pair', 'from', 'to'] as const;

export const view: View = {tab: 'overview', profile: 0, size: 2 ** 20, ways: 8, threads: 1, pane: 'list', by: 'line', filter: '',
                           pick: '', pair: -1, level: '', from: -1, to: -1};
let first: View = {...view};

// 'view': all is drawn anew; 'pick': another place, the rest stays; 'cache': the same things with other figures.
export type What = 'view' | 'pick' | 'cache';
type Listener = (what: What) => void;
let listeners: Listener[] = [];
export const onChange = (listener: Listener) => { listeners.push(listener); };
// A new view starts with none: what the old one drew is gone.
export const forgetListeners = () => { listeners = []; };
const tell = (what: What) => [...listeners].forEach(listener => listener(what));

// Lines are as large as the profile's blocks: a profile has no hit rates of other lines.
export const lineSize = () => profiles[view.profile]?.granularity ?? 64;

export function chosenCache(): Cache {
  const line = lineSize(), bytes = Math.max(line, Math.floor(view.size / view.threads / line) * line);
  return {name: 'chosen', bytes, ways: view.ways, line};
}

// What is looked at: the chosen profile, or the windows of it that were chosen.
export const current = (): Profile => stretchOf(profiles[view.profile]!, view.from, view.to);

// Caches whose lines are the blocks of this profile.
export const comparable = () => caches.filter(cache => cache.line === lineSize());

export function start(): void {
  const focus = profiles[0]?.report.focus;
  if (focus) Object.assign(view, {size: focus.bytes, ways: focus.ways * focus.line >= focus.bytes ? 0 : focus.ways});
  first = {...view};
  read();
  const again = () => {
    read();
    tell('view');
  };
  window.addEventListener('popstate', again);
  window.addEventListener('hashchange', again);
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
  view.threads = Math.max(1, view.threads);
  view.size = Math.max(lineSize(), view.size);
}

export function fragment(part: Partial<View> = {}): string {
  const fields = new URLSearchParams(), all = {...view, ...part};
  for (const name of [...kTexts, ...kNumbers])
    if (all[name] !== first[name]) fields.set(name, String(all[name]));
  return '#' + fields.toString();
}

let pending = 0;
export function change(part: Partial<View>, what: What = 'view'): void {
  const before = fragment();
  Object.assign(view, part);
  // Each place, tab and pane is a step of the history. Moving a slider or typing must not fill it, nor run into the
  // browser's limit on it.
  const step = ['tab', 'pick', 'pane', 'by', 'profile', 'level', 'pair', 'from'].some(name => name in part);
  clearTimeout(pending);
  if (step) {
    if (fragment() !== before) history.pushState(null, '', fragment());
  } else pending = window.setTimeout(() => history.replaceState(null, '', fragment()), 150);
  tell(what);
}

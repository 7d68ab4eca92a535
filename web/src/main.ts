// The page: reads the data, shows the tab the fragment names, redraws when it changes.
import {advice} from './advice';
import {code} from './code';
import {compare} from './compare';
import {load, Profile, profiles} from './data';
import {Child, h, replace} from './dom';
import {bytes, count} from './format';
import {overview} from './overview';
import {data, phases, threads} from './parts';
import {sharing} from './sharing';
import {change, current, forgetListeners, fragment, onChange, start, view} from './state';

interface Tab { name: string; title: string; there: (profile: Profile) => boolean; draw: () => HTMLElement }
const kTabs: Tab[] = [
  {name: 'overview', title: 'Overview', there: () => true, draw: overview},
  {name: 'advice', title: 'Advice', there: () => true, draw: advice},
  {name: 'code', title: 'Code', there: () => true, draw: code},
  {name: 'data', title: 'Data', there: profile => profile.hasObjects, draw: data},
  {name: 'threads', title: 'Threads', there: profile => profile.threads.length > 0, draw: threads},
  {name: 'sharing', title: 'Sharing', there: profile => profile.sharing.length > 0, draw: sharing},
  {name: 'phases', title: 'Phases', there: profile => profile.phases.length > 0, draw: phases},
  {name: 'compare', title: 'Compare', there: () => profiles.length > 1, draw: compare},
];

function title(profile: Profile): string {
  return profile.command.length ? profile.command.join(' ') : profile.label;
}

function under(profile: Profile): string {
  const blocks = profile.granularity > 1 ? ` of ${profile.granularity} B (${bytes(profile.distinct * profile.granularity)}${profile.distinctRange && ', '}${profile.distinctRange})` : profile.distinctRange && ` (${profile.distinctRange})`;
  return `${count(profile.accesses)} accesses${profile.accessesError && ' '}${profile.accessesError} to ${count(profile.distinct)} blocks${blocks}`;
}

// Method, samples, clock, model, notes: one panel, closed until asked for.
function measured(profile: Profile): Child {
  return h('details', {class: 'measured'}, h('summary', {}, 'How this was measured'),
    h('dl', {}, profile.report.measured.map(([what, text]) => [h('dt', {}, what), h('dd', {}, text)])));
}

// Of a stretch, every tab but Phases, where it is chosen, and Compare shows that stretch.
function stretchBar(tab: string): Child {
  const stretch = current().stretch;
  if (!stretch || tab === 'phases' || tab === 'compare') return null;
  return h('p', {class: 'warning stretch'}, h('b', {}, `windows ${stretch.from + 1} to ${stretch.to + 1} of ${stretch.of}`),
    ' alone; pairs, call paths, threads and time are known for the whole run only. ',
    h('button', {type: 'button', onclick: () => change({from: -1, to: -1})}, 'Whole run'));
}

function render(): void {
  forgetListeners();
  onChange(what => { if (what === 'view') render(); });
  const focused = (document.activeElement as HTMLElement | null)?.dataset?.filter !== undefined;
  const profile = profiles[view.profile]!, shown = current();
  const tabs = kTabs.filter(tab => tab.there(shown));
  const tab = tabs.find(tab => tab.name === view.tab) ?? tabs[0]!;
  document.title = `${title(profile)} · revisit`;
  const nav = h('nav', {'aria-label': 'Sections'}, tabs.map(entry =>
    h('a', {href: fragment({tab: entry.name, pick: '', filter: ''}), 'aria-current': entry === tab ? 'page' : null, 'data-tab': entry.name,
      onclick: (event: MouseEvent) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        change({tab: entry.name, pick: '', filter: '', pair: -1});
      }}, entry.title)));
  replace(document.getElementById('app')!,
    h('header', {},
      h('div', {class: 'title'}, h('h1', {}, title(profile)), h('span', {class: 'quiet'}, under(profile)),
        profiles.length > 1 && h('label', {class: 'which'}, 'Profile ', h('select', {onchange: (event: any) => change({profile: Number(event.target.value), pick: ''})},
          profiles.map((one, i) => h('option', {value: i, selected: i === view.profile}, one.label)))),
        measured(profile)), nav),
    h('main', {id: 'main', tabindex: -1}, h('h2', {class: 'unseen'}, tab.title), stretchBar(tab.name), tab.draw()),
    h('footer', {class: 'quiet'}, 'Made by revisit. This page is one file and talks to nobody; the address bar keeps the view.'));
  if (focused) {
    const input = document.querySelector<HTMLInputElement>('[data-filter]');
    input?.focus();
    input?.setSelectionRange(input.value.length, input.value.length);
  }
}

load(document.getElementById('data')!.textContent!);
start();
render();

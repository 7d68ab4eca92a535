// The page: reads the data, shows the tab the fragment names, redraws when it changes.
import {advice} from './advice';
import {code} from './code';
import {compare} from './compare';
import {load, Profile, profiles} from './data';
import {h, replace} from './dom';
import {bytes, count} from './format';
import {overview} from './overview';
import {data, phases, threads} from './parts';
import {change, forgetListeners, onChange, start, view} from './state';

interface Tab { name: string; title: string; there: (profile: Profile) => boolean; draw: () => HTMLElement }
const kTabs: Tab[] = [
  {name: 'overview', title: 'Overview', there: () => true, draw: overview},
  {name: 'code', title: 'Code', there: () => true, draw: code},
  {name: 'data', title: 'Data', there: profile => profile.hasObjects, draw: data},
  {name: 'threads', title: 'Threads', there: profile => profile.threads.length > 0, draw: threads},
  {name: 'phases', title: 'Phases', there: profile => profile.phases.length > 0, draw: phases},
  {name: 'advice', title: 'Advice', there: () => true, draw: advice},
  {name: 'compare', title: 'Compare', there: () => profiles.length > 1, draw: compare},
];

function title(profile: Profile): string {
  return profile.command.length ? profile.command.join(' ') : profile.label;
}

function under(profile: Profile): string {
  const parts = [`${count(profile.accesses)} accesses to ${count(profile.distinct)} blocks`];
  if (profile.granularity > 1) parts[0] += ` of ${profile.granularity} B (${bytes(profile.distinct * profile.granularity)})`;
  parts.push(`method ${profile.method}`, `model ${profile.model}`);
  if (profile.clock) parts.push(`clock ${profile.clock}`);
  if (profile.machine) parts.push(profile.machine);
  return parts.join(' · ');
}

function render(): void {
  forgetListeners();
  onChange(what => { if (what === 'view') render(); });
  const focused = (document.activeElement as HTMLElement | null)?.dataset?.filter !== undefined;
  const profile = profiles[view.profile]!;
  const tabs = kTabs.filter(tab => tab.there(profile));
  const tab = tabs.find(tab => tab.name === view.tab) ?? tabs[0]!;
  document.title = `${title(profile)} · revisit`;
  const nav = h('nav', {'aria-label': 'Sections'}, tabs.map(entry =>
    h('a', {href: '#tab=' + entry.name, 'aria-current': entry === tab ? 'page' : null, 'data-tab': entry.name,
      onclick: (event: MouseEvent) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        change({tab: entry.name});
      }}, entry.title)));
  replace(document.getElementById('app')!,
    h('header', {},
      h('div', {class: 'title'}, h('h1', {}, title(profile)),
        profiles.length > 1 && h('label', {class: 'which'}, 'Profile ', h('select', {onchange: (event: any) => change({profile: Number(event.target.value), pick: ''})},
          profiles.map((one, i) => h('option', {value: i, selected: i === view.profile}, one.label))))),
      h('p', {class: 'quiet'}, under(profile)), nav),
    h('main', {id: 'main', tabindex: -1}, h('h2', {class: 'unseen'}, tab.title), tab.draw()),
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

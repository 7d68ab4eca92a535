// From one thing to another: code ↔ data ↔ advice, each a link that a new tab and the keyboard can follow too.
import {Profile, Site} from './data';
import {Child, h} from './dom';
import {keyOfLine} from './places';
import {change, fragment, View} from './state';

export function link(text: Child, part: Partial<View>, title = ''): HTMLElement {
  return h('a', {href: fragment(part), title: title || null, onclick: (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    change(part);
  }}, text);
}

export const toCode = (site: Site): Partial<View> => ({tab: 'code', by: 'line', pane: 'list', filter: '', pick: keyOfLine(site), pair: -1});
export const toSource = (site: Site): Partial<View> => ({...toCode(site), pane: 'source'});

export function codeLink(profile: Profile, id: number, text: Child): Child {
  const site = profile.siteById.get(id);
  return site ? link(text, toCode(site), 'Show this line') : text;
}

export function dataLink(profile: Profile, name: string): Child {
  const object = profile.objects.find(one => `${one.kind} ${one.name}` === name);
  return object ? link(name, {tab: 'data', pick: name}, 'Show this data') : h('span', {class: 'name'}, name);
}

// Opens the line in VS Code, where that is installed.
export function editorLink(file: string, line: number): Child {
  if (!file.startsWith('/')) return null;
  return h('a', {class: 'editor', href: `vscode://file${encodeURI(file)}:${line}`, title: `Open ${file}:${line} in VS Code`}, 'open in editor');
}

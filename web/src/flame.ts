// Misses by call path: the reuse side of every pair, or by module, file and function where paths are missing.
import {HitTable} from './cache';
import {pathOf, Profile, Site} from './data';
import {Child, h, replace, responsive} from './dom';
import {count, fileName, percent} from './format';
import {siteName} from './places';
import {behind} from './table';

interface Node { name: string; misses: number; children: Map<string, Node> }

const kRow = 22, kNarrowest = 2;

function grow(root: Node, path: string[], misses: number): void {
  root.misses += misses;
  let at = root;
  for (const name of path) {
    let next = at.children.get(name);
    if (!next) at.children.set(name, next = {name, misses: 0, children: new Map()});
    next.misses += misses;
    at = next;
  }
}

function build(profile: Profile, sites: Site[], hits: HitTable): Node {
  const root: Node = {name: 'all', misses: 0, children: new Map()};
  const wanted = new Set(sites.map(site => site.id));
  if (profile.pairs.some(pair => pair.reuseContext > 0)) {
    // Pairs tell reuses only; first touches have no pair and are added below their site.
    const paired = new Map<number, number>();
    for (const pair of profile.pairs) {
      if (!wanted.has(pair.reuse)) continue;
      const misses = hits.misses(pair.distances);
      paired.set(pair.reuse, (paired.get(pair.reuse) ?? 0) + misses);
      const frames = pathOf(profile, pair.reuseContext).map(frame => frame.function || fileName(frame.module) || '?');
      grow(root, [...frames, siteName(profile.siteById.get(pair.reuse), pair.reuse)], misses);
    }
    for (const site of sites) {
      const left = hits.misses(site.reuse) - (paired.get(site.id) ?? 0);
      if (left > 0.5) grow(root, ['first touches and the like', site.function || '?', siteName(site, site.id)], left);
    }
  } else {
    for (const site of sites)
      grow(root, [fileName(site.module), fileName(site.file), site.function, siteName(site, site.id)].filter(Boolean), hits.misses(site.reuse));
  }
  return root;
}

function tint(name: string): number {
  let hash = 0;
  for (let i = 0; i < name.length; ++i) hash = (hash * 31 + name.charCodeAt(i)) | 0;
  return Math.abs(hash) % 5;
}

export function flame(profile: Profile, sites: Site[], hits: HitTable): Child {
  const root = build(profile, sites, hits);
  if (root.misses <= 0) return h('p', {class: 'quiet'}, 'Nothing misses in this cache.');
  const box = h('div', {});
  const rows: {path: string; misses: number}[] = [];
  const walk = (node: Node, path: string[]) => {
    let own = node.misses;
    for (const child of node.children.values()) {
      own -= child.misses;
      walk(child, [...path, child.name]);
    }
    if (own > 1e-9 * root.misses && path.length) rows.push({path: path.join(';'), misses: own});
  };
  walk(root, []);
  const show = (top: Node) => replace(box,
    top !== root && h('button', {type: 'button', onclick: () => show(root)}, '← all'),
    responsive('flame', width => draw(top, root, width, show)));
  show(root);
  return [box, behind([
    {title: 'path', wide: true, value: (row: {path: string; misses: number}) => row.path},
    {title: 'misses', value: row => row.misses, show: row => count(row.misses), bar: row => row.misses / root.misses},
  ], rows, {name: 'flame', caption: 'Misses by path', sort: 1})];
}

function draw(top: Node, root: Node, width: number, show: (node: Node) => void): HTMLElement {
  const picture = h('div', {class: 'flame-rows'});
  let deepest = 0;
  const place = (node: Node, left: number, room: number, level: number) => {
    if (room < kNarrowest || level >= 60) return;
    deepest = Math.max(deepest, level);
    const label = `${node.name}: ${count(node.misses)} misses, ${percent(node.misses / root.misses, 1)}`;
    picture.append(h('button', {type: 'button', class: `flame-box tint-${tint(node.name)}`, title: label, 'aria-label': label,
      style: `left:${left}px;top:${level * kRow}px;width:${Math.max(1, room - 1)}px`, tabindex: room > 30 ? 0 : -1,
      onclick: () => show(node)}, room > 30 ? node.name : ''));
    let at = left;
    for (const child of [...node.children.values()].sort((a, b) => b.misses - a.misses)) {
      const share = room * child.misses / node.misses;
      place(child, at, share, level + 1);
      at += share;
    }
  };
  place(top, 0, width, 0);
  picture.style.height = `${(deepest + 1) * kRow}px`;
  return picture;
}

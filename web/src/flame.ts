// Misses by call path: the reuse side of every pair, or by module, file and function where paths are missing.
import {HitTable} from './cache';
import {Histogram, Profile, Site} from './data';
import {Child, h, replace, responsive} from './dom';
import {count, fileName, percent} from './format';
import {siteName} from './places';
import {behind} from './table';

interface Node { name: string; misses: number; parent: Node | null; children: Map<string, Node> }

const kRow = 22, kNarrowest = 3, kDeepest = 200;

// The tree does not depend on the cache; only the misses at its leaves do.
export interface Tree { root: Node; leaves: {node: Node; histogram: Histogram}[]; remainders: {node: Node; site: Site; paired: Histogram[]}[] }

function below(parent: Node, name: string): Node {
  let child = parent.children.get(name);
  if (!child) parent.children.set(name, child = {name, misses: 0, parent, children: new Map()});
  return child;
}

export function treeOf(profile: Profile, sites: Site[]): Tree {
  const root: Node = {name: 'all', misses: 0, parent: null, children: new Map()};
  const tree: Tree = {root, leaves: [], remainders: []};
  const wanted = new Map(sites.map(site => [site.id, site]));
  if (profile.contexts.length > 1) {
    // Pairs tell reuses only; first touches have no pair and hang below their function.
    const nodes: Node[] = [root], depth = [0], paired = new Map<number, Histogram[]>();
    profile.contexts.forEach((frame, i) => {
      if (i === 0) return;
      const parent = nodes[frame.parent] ?? root;
      depth[i] = (depth[frame.parent] ?? 0) + 1;
      nodes[i] = depth[i]! > kDeepest ? parent : below(parent, frame.function || fileName(frame.module) || '?');
    });
    for (const pair of profile.pairs) {
      const site = wanted.get(pair.reuse);
      if (!site) continue;
      const list = paired.get(site.id);
      if (list) list.push(pair.distances);
      else paired.set(site.id, [pair.distances]);
      // Frames are calls; the function the site is in comes after the last of them.
      const inside = below(nodes[pair.reuseContext] ?? root, site.function || fileName(site.module) || '?');
      tree.leaves.push({node: below(inside, siteName(site, site.id)), histogram: pair.distances});
    }
    const first = below(root, 'first touches and the like');
    for (const site of sites)
      tree.remainders.push({node: below(below(first, site.function || '?'), siteName(site, site.id)), site, paired: paired.get(site.id) ?? []});
  } else {
    for (const site of sites) {
      let node = root;
      for (const name of [fileName(site.module), fileName(site.file), site.function, siteName(site, site.id)]) if (name) node = below(node, name);
      tree.leaves.push({node, histogram: site.reuse});
    }
  }
  return tree;
}

function weigh(tree: Tree, hits: HitTable): void {
  const clear = (node: Node) => {
    node.misses = 0;
    node.children.forEach(clear);
  };
  clear(tree.root);
  for (const {node, histogram} of tree.leaves) node.misses += hits.misses(histogram);
  for (const {node, site, paired} of tree.remainders) {
    let left = hits.misses(site.reuse);
    for (const histogram of paired) left -= hits.misses(histogram);
    if (left > 0.5) node.misses += left;
  }
  const gather = (node: Node): number => {
    for (const child of node.children.values()) node.misses += gather(child);
    return node.misses;
  };
  gather(tree.root);
}

function tint(name: string): number {
  let hash = 0;
  for (let i = 0; i < name.length; ++i) hash = (hash * 31 + name.charCodeAt(i)) | 0;
  return Math.abs(hash) % 5;
}

export function flame(tree: Tree, hits: HitTable): Child {
  weigh(tree, hits);
  const root = tree.root;
  if (root.misses <= 0) return h('p', {class: 'quiet'}, 'Nothing misses in this cache.');
  const box = h('div', {});
  const rows = () => {
    const out: {path: string; misses: number}[] = [];
    const walk = (node: Node, path: string[]) => {
      let own = node.misses;
      for (const child of node.children.values()) {
        own -= child.misses;
        walk(child, [...path, child.name]);
      }
      if (own > 1e-9 * root.misses && path.length) out.push({path: path.join(';'), misses: own});
    };
    walk(root, []);
    return out;
  };
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

// Misses by call path: a flame graph that zooms and searches, and the sandwich view of one function: who calls it above,
// what it calls below. Ours rather than d3-flame-graph's: boxes are buttons, so the keyboard and screen readers have
// them too, and nothing needs a style the page's policy forbids.
import {HitTable} from './cache';
import {Histogram, Profile, Site} from './data';
import {Child, h, replace, responsive} from './dom';
import {count, fileName, percent} from './format';
import {frameName, siteName} from './places';
import {behind} from './table';

interface Node { name: string; misses: number; parent: Node | null; children: Map<string, Node>; site: Site | null }

const kRow = 22, kNarrowest = 3, kDeepest = 200;

// The tree does not depend on the cache; only the misses at its leaves do.
export interface Tree { root: Node; leaves: {node: Node; histogram: Histogram}[]; remainders: {node: Node; site: Site; paired: Histogram[]}[] }

const fresh = (name: string, parent: Node | null = null): Node => ({name, misses: 0, parent, children: new Map(), site: null});

function below(parent: Node, name: string): Node {
  let child = parent.children.get(name);
  if (!child) parent.children.set(name, child = fresh(name, parent));
  return child;
}

export function treeOf(profile: Profile, sites: Site[]): Tree {
  const root = fresh('all');
  const tree: Tree = {root, leaves: [], remainders: []};
  const wanted = new Map(sites.map(site => [site.id, site]));
  const leaf = (parent: Node, site: Site) => {
    const node = below(parent, siteName(site, site.id));
    node.site = site;
    return node;
  };
  if (profile.contexts.length > 1 && !profile.stretch) {
    const nodes: Node[] = [root], depth = [0], paired = new Map<number, Histogram[]>();
    profile.contexts.forEach((frame, i) => {
      if (i === 0) return;
      const parent = nodes[frame.parent] ?? root;
      depth[i] = (depth[frame.parent] ?? 0) + 1;
      nodes[i] = depth[i]! > kDeepest ? parent : below(parent, frameName(frame));
    });
    const take = (site: Site, context: number, histogram: Histogram) => {
      const list = paired.get(site.id);
      if (list) list.push(histogram);
      else paired.set(site.id, [histogram]);
      // Frames are calls; the function the site is in comes after the last of them, below those it was inlined into.
      let at = nodes[context] ?? root;
      for (const frame of [...site.inlined].reverse()) at = below(at, frame.function || '?');
      tree.leaves.push({node: leaf(below(at, frameName(site)), site), histogram});
    };
    for (const pair of profile.pairs) if (wanted.has(pair.reuse)) take(wanted.get(pair.reuse)!, pair.reuseContext, pair.distances);
    for (const touch of profile.touches) if (wanted.has(touch.site)) take(wanted.get(touch.site)!, touch.context, touch.reuse);
    const first = below(root, 'no call stack recorded');
    for (const site of sites)
      tree.remainders.push({node: leaf(below(first, site.function || '?'), site), site, paired: paired.get(site.id) ?? []});
  } else {
    for (const site of sites) {
      let node = root;
      for (const name of [fileName(site.module), fileName(site.file), site.function]) if (name) node = below(node, name);
      tree.leaves.push({node: leaf(node, site), histogram: site.reuse});
    }
  }
  return tree;
}

// The same misses by data: object → member of its type → line.
export function dataTree(sites: Site[]): Tree {
  const tree: Tree = {root: fresh('all data'), leaves: [], remainders: []};
  for (const site of sites) {
    let node = below(tree.root, site.data || 'no object known');
    if (site.member) node = below(node, site.member);
    node = below(node, siteName(site, site.id));
    node.site = site;
    tree.leaves.push({node, histogram: site.reuse});
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

// All occurrences of a function as one: its callers as a tree upwards, what it calls as a tree downwards. A recursive
// call lies inside an outer one and counts once.
function sandwich(root: Node, name: string): {callers: Node; callees: Node} {
  const callers = fresh(name), callees = fresh(name);
  const merge = (from: Node, to: Node) => {
    to.misses += from.misses;
    to.site ??= from.site;
    from.children.forEach(child => merge(child, below(to, child.name)));
  };
  const walk = (node: Node) => {
    if (node.name === name) {
      merge(node, callees);
      callers.misses += node.misses;
      let to = callers;
      for (let at = node.parent; at && at !== root; at = at.parent) (to = below(to, at.name)).misses += node.misses;
      return;
    }
    node.children.forEach(walk);
  };
  walk(root);
  return {callers, callees};
}

// Two profiles as one tree: as wide as the misses now, and what each box gained or lost. Boxes that only one of them has
// are there too.
export function difference(before: Profile, after: Profile, hits: HitTable): Child {
  const trees = [treeOf(before, before.sites), treeOf(after, after.sites)];
  trees.forEach(tree => weigh(tree, hits));
  const was = trees[0]!.root, now = trees[1]!.root;
  if (was.misses + now.misses <= 0) return h('p', {class: 'quiet'}, 'Nothing misses in this cache.');
  const scale = Math.max(was.misses, now.misses);
  const picture = responsive('flame', width => {
    const rows = h('div', {class: 'flame-rows'});
    let deepest = 0;
    const place = (old: Node | undefined, fresh: Node | undefined, left: number, room: number, level: number) => {
      if (room < kNarrowest || level >= 60) return;
      deepest = Math.max(deepest, level);
      const name = (fresh ?? old)!.name, change = (fresh?.misses ?? 0) - (old?.misses ?? 0);
      const label = `${name}: ${count(old?.misses ?? 0)} → ${count(fresh?.misses ?? 0)} misses (${change < 0 ? '−' : '+'}${count(Math.abs(change))})`;
      const share = Math.min(1, Math.abs(change) / Math.max(1, old?.misses ?? 0, fresh?.misses ?? 0));
      rows.append(h('div', {class: 'flame-box changed', title: label, role: 'img', 'aria-label': label,
        style: `left:${left}px;width:${Math.max(1, room - 1)}px;top:${level * kRow}px;background:color-mix(in srgb, var(${change < 0 ? '--gain-bar' : '--loss-bar'}) ${Math.round(100 * share)}%, var(--line))`},
        room > 60 ? `${name} ${change < 0 ? '−' : '+'}${count(Math.abs(change))}` : room > 30 ? name : ''));
      const names = new Set([...(fresh?.children.keys() ?? []), ...(old?.children.keys() ?? [])]);
      const weight = (child: string) => Math.max(old?.children.get(child)?.misses ?? 0, fresh?.children.get(child)?.misses ?? 0);
      const all = Math.max(1e-300, [...names].reduce((sum, child) => sum + weight(child), 0), old?.misses ?? 0, fresh?.misses ?? 0);
      let at = left;
      for (const child of [...names].sort((a, b) => weight(b) - weight(a))) {
        const wide = room * weight(child) / all;
        place(old?.children.get(child), fresh?.children.get(child), at, wide, level + 1);
        at += wide;
      }
    };
    place(was, now, 0, width, 0);
    rows.style.height = `${(deepest + 1) * kRow}px`;
    return rows;
  });
  const rows = () => {
    const out: {path: string; before: number; after: number}[] = [];
    const walk = (old: Node | undefined, fresh: Node | undefined, path: string[]) => {
      const names = new Set([...(fresh?.children.keys() ?? []), ...(old?.children.keys() ?? [])]);
      if (names.size === 0) out.push({path: path.join(';'), before: old?.misses ?? 0, after: fresh?.misses ?? 0});
      names.forEach(name => walk(old?.children.get(name), fresh?.children.get(name), [...path, name]));
    };
    walk(was, now, []);
    return out.filter(row => Math.abs(row.after - row.before) > 1e-9 * scale);
  };
  return [picture, behind([
    {title: 'path', wide: true, value: (row: {path: string; before: number; after: number}) => row.path},
    {title: 'change', value: row => Math.abs(row.after - row.before), show: row => `${row.after < row.before ? '−' : '+'}${count(Math.abs(row.after - row.before))}`,
     bar: row => Math.abs(row.after - row.before) / scale, tone: row => row.after < row.before ? 'gain' : 'loss'},
    {title: 'before', value: row => row.before, show: row => count(row.before)},
    {title: 'after', value: row => row.after, show: row => count(row.after)},
  ], rows, {name: 'flame-difference', caption: 'Change of misses by path', sort: 1})];
}

function tint(name: string): number {
  let hash = 0;
  for (let i = 0; i < name.length; ++i) hash = (hash * 31 + name.charCodeAt(i)) | 0;
  return Math.abs(hash) % 5;
}

export function flame(tree: Tree, hits: HitTable, pick: (site: Site) => void, what = 'functions'): Child {
  weigh(tree, hits);
  const root = tree.root;
  if (root.misses <= 0) return h('p', {class: 'quiet'}, 'Nothing misses in this cache.');
  const picture = h('div', {}), crumbs = h('p', {class: 'crumbs'}), found = h('output', {class: 'quiet', 'aria-live': 'polite'});
  let top = root, word = '', around = '';
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
  const choose = (node: Node) => {
    if (node.site) pick(node.site);
    if (around) around = node.site ? around : node.name;
    else top = node;
    show();
  };
  const show = () => {
    const path: Node[] = [];
    for (let at: Node | null = top; at; at = at.parent) path.unshift(at);
    replace(crumbs, around ? [h('b', {class: 'name'}, around), ' '] : path.map((node, i) => [i ? ' › ' : '', node === top ? h('b', {}, node.name)
      : h('button', {type: 'button', class: 'plain', onclick: () => { top = node; show(); }}, node.name)]), ' ',
      around ? h('button', {type: 'button', onclick: () => { around = ''; show(); }}, 'Back to the flame graph')
        : what === 'functions' && top !== root && !top.site && h('button', {type: 'button', onclick: () => { around = top.name; show(); }}, 'Callers and callees'));
    let matched = 0;
    const sum = (node: Node): void => {
      if (word && node.name.toLowerCase().includes(word)) matched += node.misses;
      else node.children.forEach(sum);
    };
    sum(root);
    replace(found, word ? (matched > 0 ? `${percent(matched / root.misses, 1)} of misses match` : 'no match') : '');
    if (around) {
      const {callers, callees} = sandwich(root, around);
      replace(picture, h('h4', {}, 'Callers'), responsive('flame', width => draw(callers, root.misses, width, word, choose, true)),
        h('h4', {}, 'Callees'), responsive('flame', width => draw(callees, root.misses, width, word, choose, false)));
    } else replace(picture, responsive('flame', width => draw(top, root.misses, width, word, choose, false)));
  };
  show();
  return [h('div', {class: 'filters'},
    h('input', {type: 'search', placeholder: `search ${what}`, 'aria-label': 'Search the flame graph', oninput: (event: any) => {
      word = event.target.value.trim().toLowerCase();
      show();
    }}), found), crumbs, picture,
  h('p', {class: 'quiet'}, 'As wide as its misses; colours only tell boxes apart. Click a box to zoom in; a line shows on the right.'),
  behind([
    {title: 'path', wide: true, value: (row: {path: string; misses: number}) => row.path},
    {title: 'misses', value: row => row.misses, show: row => count(row.misses), bar: row => row.misses / root.misses},
  ], rows, {name: 'flame', caption: 'Misses by path', sort: 1})];
}

function draw(top: Node, all: number, width: number, word: string, choose: (node: Node) => void, upwards: boolean): HTMLElement {
  const picture = h('div', {class: 'flame-rows'}), boxes: {box: HTMLElement; level: number}[] = [];
  let deepest = 0;
  const place = (node: Node, left: number, room: number, level: number) => {
    if (room < kNarrowest || level >= 60) return;
    deepest = Math.max(deepest, level);
    const label = `${node.name}: ${count(node.misses)} misses, ${percent(node.misses / all, 1)}`;
    const match = word && node.name.toLowerCase().includes(word);
    const box = h('button', {type: 'button', class: `flame-box tint-${tint(node.name)}${word ? match ? ' match' : ' dim' : ''}`, title: label, 'aria-label': label,
      style: `left:${left}px;width:${Math.max(1, room - 1)}px`, tabindex: room > 30 ? 0 : -1, onclick: () => choose(node)}, room > 30 ? node.name : '');
    boxes.push({box, level});
    let at = left;
    for (const child of [...node.children.values()].sort((a, b) => b.misses - a.misses)) {
      const share = room * child.misses / node.misses;
      place(child, at, share, level + 1);
      at += share;
    }
  };
  place(top, 0, width, 0);
  for (const {box, level} of boxes) {
    box.style.top = `${(upwards ? deepest - level : level) * kRow}px`;
    picture.append(box);
  }
  picture.style.height = `${(deepest + 1) * kRow}px`;
  return picture;
}

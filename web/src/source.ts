// Source files with misses and time in the margin. highlight.js tells what is a keyword and what a comment; its tokens
// become elements here, because nothing in this page parses markup.
import hljs from 'highlight.js/lib/core';
import ada from 'highlight.js/lib/languages/ada';
import c from 'highlight.js/lib/languages/c';
import cpp from 'highlight.js/lib/languages/cpp';
import d from 'highlight.js/lib/languages/d';
import delphi from 'highlight.js/lib/languages/delphi';
import fortran from 'highlight.js/lib/languages/fortran';
import go from 'highlight.js/lib/languages/go';
import julia from 'highlight.js/lib/languages/julia';
import llvm from 'highlight.js/lib/languages/llvm';
import nim from 'highlight.js/lib/languages/nim';
import objectivec from 'highlight.js/lib/languages/objectivec';
import rust from 'highlight.js/lib/languages/rust';
import swift from 'highlight.js/lib/languages/swift';
import x86asm from 'highlight.js/lib/languages/x86asm';
import {HitTable} from './cache';
import {Profile, sources} from './data';
import {Child, h} from './dom';
import {count, fileName, percent} from './format';
import {median, Place} from './places';
import {span} from './format';

const kLanguages = {ada, c, cpp, d, delphi, fortran, go, julia, llvm, nim, objectivec, rust, swift, x86asm};
for (const [name, language] of Object.entries(kLanguages)) hljs.registerLanguage(name, language);
const kEndings: Record<string, keyof typeof kLanguages> = {
  c: 'c', h: 'cpp', cc: 'cpp', cpp: 'cpp', cxx: 'cpp', 'c++': 'cpp', C: 'cpp', hh: 'cpp', hpp: 'cpp', hxx: 'cpp', inl: 'cpp', ipp: 'cpp',
  cu: 'cpp', cuh: 'cpp', f: 'fortran', F: 'fortran', f90: 'fortran', F90: 'fortran', f95: 'fortran', for: 'fortran', rs: 'rust', go: 'go',
  d: 'd', zig: 'c', swift: 'swift', m: 'objectivec', mm: 'objectivec', S: 'x86asm', s: 'x86asm', asm: 'x86asm', adb: 'ada', pas: 'delphi',
  nim: 'nim', jl: 'julia', ll: 'llvm'};

interface Token { scope?: string; children: (Token | string)[] }
type Piece = [string, string];  // class, text

// Lines of pieces; a token that spans lines is cut at their ends.
function highlight(file: string, lines: string[]): Piece[][] {
  const plain = lines.map((line): Piece[] => [['', line]]);
  const language = kEndings[file.slice(file.lastIndexOf('.') + 1)];
  if (!language || lines.length > 20000) return plain;
  const out: Piece[][] = [[]];
  const walk = (node: Token | string, scope: string) => {
    if (typeof node !== 'string') {
      const own = node.scope && !node.scope.startsWith('language:') ? 'hl-' + node.scope.split('.')[0] : scope;
      node.children.forEach(child => walk(child, own));
      return;
    }
    node.split('\n').forEach((part, i) => {
      if (i) out.push([]);
      if (part) out[out.length - 1]!.push([scope, part]);
    });
  };
  try {
    const result = hljs.highlight(lines.join('\n'), {language, ignoreIllegals: true}) as unknown as {_emitter?: {rootNode?: Token}};
    if (!result._emitter?.rootNode) return plain;
    walk(result._emitter.rootNode, '');
  } catch {
    return plain;
  }
  return out.length === lines.length ? out : plain;
}

const known = new Map<string, Piece[][]>();
function pieces(file: string): Piece[][] {
  let found = known.get(file);
  if (!found) known.set(file, found = highlight(file, sources.get(file)!));
  return found;
}
const text = (line: Piece[]): Child => line.map(([scope, part]) => scope ? h('span', {class: scope}, part) : part);

interface Cost { misses: number; accesses: number; far: number; time: number; inlined: number }

// All lines of an inlined body count at their own lines; the call shows what was inlined there beside its own.
function costs(profile: Profile, file: string, hits: HitTable): Map<number, Cost> {
  const out = new Map<number, Cost>();
  const at = (line: number): Cost => out.get(line) ?? {misses: 0, accesses: 0, far: 0, time: -1, inlined: 0};
  for (const site of profile.sites) {
    // The call that a body was inlined at, once however deep it lies.
    for (const line of new Set(site.inlined.filter(frame => frame.file === file && frame.line > 0).map(frame => frame.line))) {
      const entry = at(line);
      entry.inlined += hits.misses(site.reuse);
      out.set(line, entry);
    }
    if (site.file !== file) continue;
    const entry = at(site.line);
    entry.misses += hits.misses(site.reuse);
    entry.accesses += site.accesses;
    entry.far = Math.max(entry.far, median(hits.missed(site.reuse)));
    if (site.timeShare >= 0) entry.time = Math.max(0, entry.time) + site.timeShare;
    out.set(site.line, entry);
  }
  return out;
}

export function sourcePane(profile: Profile, place: Place | null, hits: HitTable, pick: (file: string, line: number) => void): Child {
  const missing = () => h('p', {class: 'quiet'}, place?.file ? `${place.file} is not in this page. ` : 'This place has no source. ',
    h('code', {}, 'revisit report --sources'), ' takes along the files that can be read.');
  if (!place || !sources.has(place.file)) return missing();
  const found = costs(profile, place.file, hits), timed = [...found.values()].some(entry => entry.time >= 0);
  let most = 0;
  for (const entry of found.values()) most = Math.max(most, entry.misses);
  const rows = pieces(place.file).map((line, i) => {
    const number = i + 1, entry = found.get(number);
    return h('tr', {class: (number === place.line ? 'picked ' : '') + (entry?.accesses ? 'pickable' : ''), 'data-line': number, onclick: entry?.accesses ? () => pick(place.file, number) : null},
      h('td', {class: 'number'}, entry?.accesses ? h('button', {type: 'button', class: 'pick', 'aria-label': `Line ${number}`, onclick: (event: Event) => { event.stopPropagation(); pick(place.file, number); }}, number) : number),
      h('td', {class: 'figure bar', style: `--share:${entry && most ? 100 * entry.misses / most : 0}%`}, entry ? [entry.accesses ? count(entry.misses) : '', entry.inlined >= 0.5 ? h('span', {class: 'quiet', title: 'in code that was inlined here'}, ` +${count(entry.inlined)}`) : ''] : ''),
      timed && h('td', {class: 'figure bar time', style: `--share:${entry && entry.time > 0 ? 100 * entry.time : 0}%`}, entry && entry.time >= 0 ? percent(entry.time, 0) : ''),
      h('td', {class: 'figure'}, entry && entry.far ? span(entry.far, profile.granularity) : ''),
      h('td', {class: 'text'}, text(line)));
  });
  const box = h('div', {class: 'source tall', tabindex: 0, role: 'region', 'aria-label': `Source of ${place.file}`, 'data-file': place.file},
    h('table', {}, h('thead', {}, h('tr', {}, ['line', 'misses', ...timed ? ['time'] : [], 'distance', fileName(place.file)].map(title => h('th', {scope: 'col'}, title)))),
      h('tbody', {}, rows)));
  requestAnimationFrame(() => {
    const target = rows[place.line - 1];
    if (target) box.scrollTop = Math.max(0, target.offsetTop - 160);
  });
  return box;
}

// A few lines around one.
export function excerpt(file: string, line: number): Child {
  if (!file) return null;
  if (!sources.has(file)) return h('p', {class: 'quiet'}, 'The source is not in this page; ', h('code', {}, 'revisit report --sources'), ' takes it along.');
  const all = pieces(file), from = Math.max(0, line - 4), to = Math.min(all.length, line + 3);
  return h('div', {class: 'source', tabindex: 0, role: 'region', 'aria-label': `${fileName(file)} around line ${line}`},
    h('table', {}, h('tbody', {}, all.slice(from, to).map((one, i) => h('tr', {class: from + i + 1 === line ? 'picked' : null},
      h('td', {class: 'number'}, from + i + 1), h('td', {class: 'text'}, text(one)))))));
}

// The text of one line, for lists.
export const lineText = (file: string, line: number): string => sources.get(file)?.[line - 1]?.trim() ?? '';

// Cache lines that threads share: which bytes of a line which thread uses, and whose write invalidates whose copy.
import {Profile, SharedLine, SharingEvent, SharingSide} from './data';
import {Child, h, replace} from './dom';
import {split, filterBox} from './code';
import {count} from './format';
import {codeLink, dataLink} from './links';
import {siteName} from './places';
import {change, current, lineSize, onChange, view} from './state';
import {table} from './table';

// Events between the same two source lines, whichever the threads.
interface Place { writer: SharingSide; victim: SharingSide; falseSharing: boolean; count: number; pairs: number }

// Who invalidates whom; the darker, the more often.
function matrix(title: string, events: SharingEvent[]): Child {
  const threads = [...new Set(events.flatMap(event => [event.writer.thread, event.victim.thread]))].sort((a, b) => a - b).slice(0, 32);
  const cells = new Map<string, number>();
  let most = 0;
  for (const event of events) {
    const key = `${event.writer.thread} ${event.victim.thread}`, sum = (cells.get(key) ?? 0) + event.count;
    cells.set(key, sum);
    most = Math.max(most, sum);
  }
  return [h('p', {class: 'quiet', 'aria-hidden': 'true'}, `${title}: writing thread (rows) → thread that misses (columns); the darker, the more often`),
    h('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': title}, h('table', {class: 'matrix'},
    h('caption', {class: 'unseen'}, `${title}: writing thread (rows) → thread that misses (columns)`),
    h('thead', {}, h('tr', {}, h('th', {scope: 'col'}, 'thread'), threads.map(victim => h('th', {scope: 'col'}, victim)))),
    h('tbody', {}, threads.map(writer => h('tr', {}, h('th', {scope: 'row'}, writer), threads.map(victim => {
      const sum = cells.get(`${writer} ${victim}`) ?? 0;
      return h('td', {style: `--heat:${most ? Math.round(45 * sum / most) : 0}%`}, sum ? count(sum) : '');
    }))))))];
}

// 1, 2, 3, 7 → 1–3, 7
function ranges(numbers: number[]): string {
  const out: string[] = [];
  for (let from = 0, to; from < numbers.length; from = to + 1) {
    for (to = from; numbers[to + 1] === numbers[to]! + 1;) ++to;
    out.push(to > from + 1 ? `${numbers[from]}–${numbers[to]}` : numbers.slice(from, to + 1).join(', '));
  }
  return out.join(', ');
}

// The line in words of eight bytes, with the threads that use each.
function byteMap(line: SharedLine): Child {
  const words = Math.max(1, Math.ceil(lineSize() / 8)), part = Math.max(1, lineSize() / 64);
  const users = Array.from({length: words}, () => ({writes: new Set<number>(), reads: new Set<number>()}));
  const mark = (side: SharingSide) => side.bytes.forEach(([from, to]) => {
    for (let at = Math.floor(from * part / 8); at < Math.ceil(to * part / 8) && at < words; ++at)
      (side.write ? users[at]!.writes : users[at]!.reads).add(side.thread);
  });
  for (const event of line.events) [event.writer, event.victim].forEach(mark);
  const sorted = (threads: Set<number>) => ranges([...threads].sort((a, b) => a - b));
  const said = users.flatMap(({writes, reads}, i) => writes.size || reads.size ? [`byte ${8 * i}: ` +
    [writes.size ? `written by thread ${sorted(writes)}` : '', reads.size ? `read by thread ${sorted(reads)}` : ''].filter(text => text).join(', ')] : []);
  return [h('p', {class: 'quiet', 'aria-hidden': 'true'}, 'Bytes of the line and the threads that write (w) and read (r) them'),
    h('div', {class: 'bytes', role: 'img', 'aria-label': `Threads that use each word of the line: ${said.join('; ')}`},
      users.map(({writes, reads}, i) => h('div', {class: writes.size ? 'written' : reads.size ? 'used' : ''}, h('span', {class: 'quiet'}, `+${8 * i}`),
        writes.size ? h('b', {}, `w ${sorted(writes)}`) : null, reads.size ? h('span', {}, `r ${sorted(reads)}`) : null,
        writes.size || reads.size ? null : h('span', {class: 'quiet'}, '·'))))];
}

function placesOf(profile: Profile, line: SharedLine): Place[] {
  const places = new Map<string, Place>();
  for (const event of line.events) {
    const key = [placeOf(profile, event.writer), placeOf(profile, event.victim), event.victim.write, event.false_sharing].join('\0');
    const place = places.get(key) ?? {writer: event.writer, victim: event.victim, falseSharing: event.false_sharing, count: 0, pairs: 0};
    place.count += event.count;
    ++place.pairs;
    places.set(key, place);
  }
  return [...places.values()];
}

function placeOf(profile: Profile, side: SharingSide): string {
  return side.place ?? siteName(profile.siteById.get(side.site), side.site);
}

// Terminal and page say the same: src/report/sharing.cpp has the sentences.
function adviceOn(line: SharedLine): Child {
  const verdict = h('p', {class: line.gain ? 'gain' : line.advice ? '' : 'quiet'}, line.verdict);
  const named = line.advice ? h('p', {class: 'gain'}, `${line.advice[0]!.toUpperCase()}${line.advice.slice(1)}.`) : null;
  return line.gain ? [verdict, named] : [named, verdict];
}

function linePane(profile: Profile, line: SharedLine): Child {
  const name = (side: SharingSide) => [codeLink(profile, side.site, placeOf(profile, side)), h('span', {class: 'quiet'}, side.write ? ' writes' : ' reads')];
  return [h('h3', {}, h('span', {class: 'name'}, `line ${line.line}`)),
    h('p', {}, line.object ? ['In ', dataLink(profile, line.object), ` at +${line.offset}. `] : '', `${count(line.count)} invalidations, ${count(line.false_count)} of them false sharing.`),
    adviceOn(line), byteMap(line), matrix('Invalidations of this line', line.events),
    table<Place>([
      {title: 'writer', wide: true, value: place => placeOf(profile, place.writer), show: place => name(place.writer)},
      {title: 'invalidates', wide: true, value: place => placeOf(profile, place.victim), show: place => name(place.victim)},
      {title: 'count', value: place => place.count, show: place => count(place.count)},
      {title: 'threads', title_: 'Pairs of threads', value: place => place.pairs, show: place => `${place.pairs} ${place.pairs === 1 ? 'pair' : 'pairs'}`},
      {title: 'sharing', value: place => place.falseSharing ? 'false' : 'true'},
    ], placesOf(profile, line), {name: 'line-events', caption: 'Source lines on both sides', sort: 2, rowsPerPage: 8}),
    matrix('All shared lines', profile.sharing)];
}

export function sharing(): HTMLElement {
  const profile = current();
  const words = view.filter.toLowerCase().split(/\s+/);
  const lines = profile.sharedLines.filter(line => words.every(word => `${line.object} ${line.line}`.toLowerCase().includes(word)));
  const most = Math.max(1, ...lines.map(line => line.count));
  const left = h('div', {}), right = h('div', {id: 'detail'});
  const draw = () => {
    const worst = lines.reduce<SharedLine | null>((best, line) => !best || line.count > best.count ? line : best, null);
    const picked = lines.find(line => line.line === view.pick) ?? worst;
    replace(left, table<SharedLine>([
      {title: 'line', wide: true, value: line => line.line, show: line => [h('span', {class: 'name'}, line.object ? `${line.object} +${line.offset}` : line.line), h('span', {class: 'quiet'}, line.object ? ` ${line.line}` : '')]},
      {title: 'invalidations', value: line => line.count, show: line => count(line.count), bar: line => line.count / most},
      {title: 'false sharing', title_: 'Different bytes of one line', value: line => line.false_count, show: line => count(line.false_count)},
    ], lines, {name: 'sharing', caption: 'Shared cache lines', sort: 1, rowsPerPage: 18, empty: 'No match.', onPick: line => change({pick: line.line}, 'pick'), picked: line => line === picked}));
    replace(right, picked ? linePane(profile, picked) : h('p', {class: 'quiet'}, 'No line matches.'));
  };
  draw();
  onChange(what => { if (what === 'pick') draw(); });
  return split([h('div', {class: 'filters'}, filterBox('object, address')), left], right);
}

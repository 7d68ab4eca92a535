// Cache lines that threads share: which bytes of a line which thread uses, and whose write invalidates whose copy.
import {Profile, SharedLine, SharingSide} from './data';
import {Child, h, replace} from './dom';
import {split, filterBox} from './code';
import {count} from './format';
import {codeLink, dataLink} from './links';
import {siteName} from './places';
import {change, current, lineSize, onChange, view} from './state';
import {table} from './table';

interface Line { key: string; object: string; offset: number; count: number; falseCount: number; events: SharedLine[] }

function gatherLines(sharing: SharedLine[]): Line[] {
  const lines = new Map<string, Line>();
  for (const event of sharing) {
    const line = lines.get(event.line) ?? {key: event.line, object: event.object, offset: event.offset, count: 0, falseCount: 0, events: []};
    line.count += event.count;
    if (event.false_sharing) line.falseCount += event.count;
    line.events.push(event);
    lines.set(event.line, line);
  }
  return [...lines.values()];
}

// Who invalidates whom; the darker, the more often.
function matrix(title: string, events: SharedLine[]): Child {
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

// The line in words of eight bytes, with the threads that use each: w writes, r reads.
function byteMap(line: Line): Child {
  const words = Math.max(1, Math.ceil(lineSize() / 8)), part = Math.max(1, lineSize() / 64);
  const users = Array.from({length: words}, () => new Map<number, string>());
  const mark = (side: SharingSide) => side.bytes.forEach(([from, to]) => {
    for (let at = Math.floor(from * part / 8); at < Math.ceil(to * part / 8) && at < words; ++at)
      users[at]!.set(side.thread, side.write || users[at]!.get(side.thread) === 'w' ? 'w' : 'r');
  });
  for (const event of line.events) [event.writer, event.victim].forEach(mark);
  return h('div', {class: 'bytes', role: 'img', 'aria-label': 'Threads that use each word of the line: ' +
    users.map((threads, i) => threads.size ? `byte ${8 * i}: ${[...threads].map(([id, how]) => `thread ${id} ${how === 'w' ? 'writes' : 'reads'}`).join(', ')}` : '').filter(text => text).join('; ')},
  users.map((threads, i) => h('div', {class: threads.size ? 'used' : ''}, h('span', {class: 'quiet'}, `+${8 * i}`),
    h('b', {}, threads.size ? [...threads].sort((a, b) => a[0] - b[0]).map(([id, how]) => `${how} t${id}`).join(' ') : '·'))));
}

function linePane(profile: Profile, line: Line): Child {
  const name = (side: SharingSide) => codeLink(profile, side.site, siteName(profile.siteById.get(side.site), side.site));
  return [h('h3', {}, h('span', {class: 'name'}, `line ${line.key}`)),
    h('p', {}, line.object ? ['In ', dataLink(profile, line.object), ` at +${line.offset}. `] : '', `${count(line.count)} invalidations, ${count(line.falseCount)} of them false sharing.`),
    line.falseCount > line.count / 2 ? [h('p', {class: 'gain'}, `Threads use different bytes of this line: align what each writes to ${lineSize()} B, and these misses go.`),
      line.events.map(event => event.advice ? h('p', {}, `${event.advice[0]!.toUpperCase()}${event.advice.slice(1)}.`) : null)]
      : h('p', {}, 'Threads use the same bytes: let each accumulate privately, or write less often.'),
    byteMap(line), matrix('Invalidations of this line', line.events),
    table<SharedLine>([
      {title: 'writer', wide: true, value: event => siteName(profile.siteById.get(event.writer.site), event.writer.site), show: event => [name(event.writer), h('span', {class: 'quiet'}, ` thread ${event.writer.thread}`)]},
      {title: 'victim', wide: true, value: event => siteName(profile.siteById.get(event.victim.site), event.victim.site), show: event => [name(event.victim), h('span', {class: 'quiet'}, ` thread ${event.victim.thread}`)]},
      {title: 'count', value: event => event.count, show: event => count(event.count)},
      {title: 'sharing', value: event => event.false_sharing ? 'false' : 'true'},
    ], line.events, {name: 'line-events', caption: 'Writers and victims of this line', sort: 2, rowsPerPage: 8}),
    matrix('All shared lines', profile.sharing)];
}

export function sharing(): HTMLElement {
  const profile = current();
  const words = view.filter.toLowerCase().split(/\s+/);
  const lines = gatherLines(profile.sharing).filter(line => words.every(word => `${line.object} ${line.key}`.toLowerCase().includes(word)));
  const most = Math.max(1, ...lines.map(line => line.count));
  const left = h('div', {}), right = h('div', {id: 'detail'});
  const draw = () => {
    const worst = lines.reduce<Line | null>((best, line) => !best || line.count > best.count ? line : best, null);
    const picked = lines.find(line => line.key === view.pick) ?? worst;
    replace(left, table<Line>([
      {title: 'line', wide: true, value: line => line.key, show: line => [h('span', {class: 'name'}, line.object ? `${line.object} +${line.offset}` : line.key), h('span', {class: 'quiet'}, line.object ? ` ${line.key}` : '')]},
      {title: 'invalidations', value: line => line.count, show: line => count(line.count), bar: line => line.count / most},
      {title: 'false sharing', title_: 'Different bytes of one line', value: line => line.falseCount, show: line => count(line.falseCount)},
    ], lines, {name: 'sharing', caption: 'Shared cache lines', sort: 1, rowsPerPage: 18, empty: 'No match.', onPick: line => change({pick: line.key}, 'pick'), picked: line => line === picked}));
    replace(right, picked ? linePane(profile, picked) : h('p', {class: 'quiet'}, 'No line matches.'));
  };
  draw();
  onChange(what => { if (what === 'pick') draw(); });
  return split([h('div', {class: 'filters'}, filterBox('object, address')), left], right);
}

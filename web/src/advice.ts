// What to do, cache by cache: findings.cpp worked it out, and the terminal says the same.
import {Advice, Level, Profile, sources} from './data';
import {Child, h} from './dom';
import {bytes, count, percent} from './format';
import {dataLink, link, toCode, toSource} from './links';
import {change, current, view} from './state';

function item(profile: Profile, one: Advice): Child {
  const site = one.reuse === undefined ? undefined : profile.siteById.get(one.reuse);
  if (one.rule === 'nothing') return h('li', {class: 'card'}, h('h3', {}, one.what));
  return h('li', {class: 'card'},
    h('h3', {}, h('span', {class: 'rule'}, one.rule), ' ', one.what),
    one.share > 0 ? h('p', {class: 'cost'}, h('span', {class: 'meter', style: `--share:${100 * one.share}%`}),
      `${count(one.misses)} misses, ${percent(one.share, 1)} of all`) : null,
    one.gain_text && h('p', {class: 'gain'}, 'Gain: ', one.gain_text),
    one.where && h('p', {}, one.where),
    one.help?.length ? [h('p', {class: 'helps'}, 'Try'), h('ul', {}, one.help.map(help => h('li', {}, help)))] : null,
    site && h('p', {}, link('Show the code', sources.has(site.file) ? toSource(site) : toCode(site)), site.data ? [' · ', dataLink(profile, site.data)] : '',
      one.rule === 'pad' || one.rule === 'unshare' ? [' · ', link('Who invalidates whom', {tab: 'sharing', pick: ''})] : ''));
}

export function advice(): HTMLElement {
  const profile = current(), levels = profile.report.caches;
  if (profile.stretch) return h('div', {class: 'card'}, h('h3', {}, 'Advice is for the whole run'));
  if (!levels.length)
    return h('div', {class: 'card'}, h('h3', {}, 'No advice'), h('p', {}, profile.report.left_out ?? 'No caches are known: give some with --cache.'));
  const level: Level = levels.find(one => one.name === view.level) ?? levels[levels.length > 1 ? 1 : 0]!;
  return h('div', {},
    h('div', {class: 'card toolbar'},
      h('div', {class: 'segments', role: 'group', 'aria-label': 'Advice for'}, levels.map(one =>
        h('button', {type: 'button', 'aria-pressed': String(one === level), onclick: () => change({level: one.name})}, `${one.name} ${bytes(one.bytes)}`))),
      h('span', {class: 'quiet'}, `${percent(level.miss_rate)} of accesses miss ${level.name}. Items may overlap: a working set and the pairs in it count the same misses.`)),
    profile.report.few_samples ? h('p', {class: 'warning'}, profile.report.lead) : null,
    h('ol', {class: 'findings'}, level.advice.map(one => item(profile, one))));
}

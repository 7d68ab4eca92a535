// The report page in a real browser, as a user has it: opened from disk, no network.
//
//   node test/page.test.mjs REVISIT_PROGRAM          exit 77: skipped, with the reason
import {readFileSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import assert from 'node:assert/strict';
import {begin} from './browser.mjs';
import {kSource, profile as newcomer} from './newcomer.mjs';

const data = join(dirname(fileURLToPath(import.meta.url)), '../../tests/golden/data');
const {revisit, scratch, page, open, run} = await begin(process.argv[2], {width: 1280, height: 900});

// Names that try to be markup, script, formulas and separators.
const kHostile = [
  '</script><script>window.hacked = 1</script>', '<img src=x onerror="window.hacked = 2">', '"><svg onload=window.hacked=3>',
  "'; window.hacked = 4; //", '=HYPERLINK("http://example.com")', '\u2028line\u2029separators', '<!--<script>', '${window.hacked = 5}', '/*data*/',
];
function hostileProfile() {
  const bins = {cold: 10, invalidated: 2, bins: [[0, 1, 50], [4096, 8192, 38]]};
  const frame = name => ({module: name, function: name, file: name, line: 3});
  return {
    schema: 'revisit/profile@1', method: kHostile[0], model: kHostile[1], granularity: 64, accesses: 900, distinct: 90,
    machine: kHostile[2], clock: kHostile[3], command: kHostile, notes: kHostile,
    reuse: {cold: 90, invalidated: 18, bins: [[0, 1, 450], [4096, 8192, 342]]},
    sites: kHostile.map((name, i) => ({id: i, ...frame(name), offset: 16, accesses: 100, reuse: bins, inlined: [{function: name, file: name, line: 1}], loop: {function: name, file: name, line: 2}})),
    contexts: [{parent: 0}, ...kHostile.map((name, i) => ({parent: i, ...frame(name)}))],
    pairs: kHostile.map((_, i) => ({use: i, reuse: (i + 1) % kHostile.length, use_context: i, reuse_context: kHostile.length, count: 38,
                                    distances: {cold: 0, invalidated: 0, bins: [[4096, 8192, 38]]}})),
    objects: kHostile.map(name => ({kind: name, name, bytes: 1 << 20, context: 2, accesses: 100, reuse: bins})),
    threads: [{id: 0, accesses: 450, reuse: bins}, {id: 1, accesses: 450, reuse: bins}],
    phases: [0, 1, 2].map(i => ({begin: 300 * i, end: 300 * i + 300, distinct: 30, reuse: bins})),
  };
}

// Charts are drawn once their width is known, tables behind them once opened: soon, not at once.
const atLeast = (selector, number) =>
  page.waitForFunction(([selector, number]) => document.querySelectorAll(selector).length >= number, [selector, number]);
const hitRate = () => page.$eval('#hit-rate', element => Number(element.dataset.hitRate));
const download = async click => {
  const [got] = await Promise.all([page.waitForEvent('download'), click()]);
  return readFileSync(await got.path(), 'utf8');
};

const tests = {
  async 'opens with the figures of the profile'() {
    await open('one.html');
    assert.equal(await page.textContent('h1'), './matmul 256');
    assert.match(await page.textContent('dl.figures'), /392 K/);
    await atLeast('svg', 3);
    assert.match(await page.title(), /matmul/);
  },
  async 'hit rates equal those of revisit cache to six digits'() {
    const specs = [[32768, 8, 64], [65536, 2, 64], [262144, 16, 64], [1048576, 8, 64], [524288, 0, 64], [786432, 12, 64], [4096, 1, 64]];
    const args = specs.flatMap(([size, ways, line]) => ['--cache', `${size}:${ways || 'full'}:${line}`]);
    const expected = JSON.parse(revisit('cache', join(data, 'base.json'), '--json', ...args)).caches;
    for (const [i, [size, ways]] of specs.entries()) {
      await open('one.html', `size=${size}&ways=${ways}`);
      assert.ok(Math.abs(await hitRate() - expected[i].hit_rate) < 1e-7, `${expected[i].name}: ${await hitRate()} and ${expected[i].hit_rate}`);
    }
    // Two threads that share 64 KiB have 32 KiB each.
    await open('one.html', 'size=65536&ways=8&threads=2');
    assert.ok(Math.abs(await hitRate() - expected[0].hit_rate) < 1e-7);
  },
  async 'sliders answer to the keyboard and the link keeps the view'() {
    await open('one.html', 'size=1048576&ways=8');
    const before = await hitRate();
    const slider = await page.$('[data-slider=size]');
    await slider.focus();
    for (let i = 0; i < 6; ++i) await page.keyboard.press('ArrowLeft');
    assert.ok(await hitRate() < before);
    assert.equal(await slider.getAttribute('aria-valuetext'), '128 KiB');
    const now = await hitRate();
    await page.waitForFunction(() => location.hash.includes('size=131072'));
    await page.reload();
    assert.equal(await hitRate(), now);
    await page.click('.presets button:first-child');
    assert.equal(await page.getAttribute('[data-slider=size]', 'aria-valuetext'), '32 KiB');
  },
  async 'charts can be read by keyboard and have their tables'() {
    await open('one.html');
    await page.focus('.chart svg');
    await page.keyboard.press('ArrowRight');
    assert.match(await page.textContent('.hero .readout'), /misses/);
    for (const summary of await page.$$('.behind summary')) await summary.click();
    await atLeast('.behind table', 3);
    const csv = await download(() => page.click('.hero .behind button:text("CSV")'));
    assert.match(csv, /^bytes,miss ratio,error\r\n0,1,0\r\n/);
  },
  async 'code: filter, gather, pick a line, see its pairs and call paths'() {
    await open('one.html', 'tab=code&size=262144');
    const rows = () => page.$$eval('.left tbody tr', list => list.length);
    assert.equal(await rows(), 2);
    await page.fill('[data-filter]', 'fill');
    await page.waitForFunction(() => location.hash.includes('filter=fill'));
    assert.equal(await rows(), 1);
    await page.fill('[data-filter]', 'nowhere');
    await page.waitForFunction(() => document.querySelector('.left').textContent.includes('No match.'));
    await page.fill('[data-filter]', '');
    await page.waitForFunction(() => !location.hash.includes('filter='));
    await page.click('.segments button:text("loop")');
    assert.match(await page.textContent('.left tbody'), /loop at matmul\.c:13 multiply.*outside loops in fill/);
    await page.click('.segments button:text("function")');
    assert.match(await page.textContent('.left tbody'), /multiply/);
    assert.match(await page.textContent('#detail'), /multiply.*Why: who used the data before/);
    const paths = await page.textContent('.paths');
    assert.match(paths, /multiply matmul\.c:14/);
    assert.match(paths, /Both are called from.*main/);
    const json = JSON.parse(await download(() => page.click('.left button:text("JSON")')));
    assert.equal(json[0].function, 'multiply');
    assert.ok(json[0].misses > 100000);
    await page.click('.segments button:text("Flame graph")');
    await atLeast('.flame-box', 4);
  },
  async 'rows are clickable as a whole, and back returns to the place before'() {
    await open('particles.html', 'tab=code');
    const chosen = () => page.textContent('#detail h3');
    const row = name => page.locator('.left tbody tr', {hasText: name});
    const first = await chosen();
    assert.match(first, /particles\.c:10/);
    await row('particles.c:16').locator('td').last().click();
    assert.match(await chosen(), /particles\.c:16/);
    assert.match(await row('particles.c:16').getAttribute('class'), /picked/);
    await row('particles.c:21').locator('.pick').focus();
    await page.keyboard.press('Enter');
    assert.match(await chosen(), /particles\.c:21/);
    await page.goBack();
    assert.match(await chosen(), /particles\.c:16/);
    await page.goForward();
    assert.match(await chosen(), /particles\.c:21/);
    await page.reload();
    assert.match(await chosen(), /particles\.c:21/);
  },
  async 'code leads to data and back'() {
    await open('particles.html', 'tab=code');
    await page.click('#detail a:text("heap main (particles.c:26)")');
    assert.match(await page.textContent('#detail h3'), /main \(particles\.c:26\) heap/);
    await page.click('#detail a:has-text("particles.c:16")');
    assert.match(await page.textContent('#detail h3'), /particles\.c:16 energy/);
  },
  async 'sources come along when asked for, and only then'() {
    await open('sources.html', 'tab=code');
    assert.match(await page.textContent('#detail .source'), /the_very_line/);
    await page.click('#detail a:text("show the code")');
    assert.match(await page.textContent('.left .source tr.picked'), /14.*the_very_line/);
    assert.ok(await page.$$eval('.left .hl-comment, .left .hl-type', list => list.length) > 0);
    assert.ok(await page.$eval('.left .source tr.picked', row => row.getBoundingClientRect().bottom < innerHeight));
    await open('plain.html', 'tab=code');
    assert.match(await page.textContent('#detail'), /The source is not in this page/);
  },
  async 'all lines of an inlined body have their misses, and the call has their sum'() {
    await open('inlined.html', 'tab=code');
    await page.click('#detail a:text("show the code")');
    const units = {'': 1, K: 1e3, M: 1e6, G: 1e9};
    const figure = async (line, part = '') => {
      const [, number, unit] = /([0-9.]+) ?([KMG]?)/.exec(await page.textContent(`.left .source tr[data-line="${line}"] .figure${part}`));
      return number * units[unit];
    };
    const body = await figure(10) + await figure(16), call = await figure(26, ' .quiet');
    assert.ok(body > 0);
    assert.ok(Math.abs(call - body) <= 0.01 * body, `${call} and ${body}`);
  },
  async 'a stretch of phases shows everywhere'() {
    await open('particles.html', 'from=12&to=15&tab=code');
    assert.match(await page.textContent('.stretch'), /windows 13 to 16 of 20 alone/);
    assert.match(await page.textContent('.left tbody'), /particles\.c:10.*400 K.*particles\.c:16.*280 K/s);
    assert.doesNotMatch(await page.textContent('.left tbody'), /particles\.c:21/);
    await page.click('nav a[data-tab=data]');
    assert.match(await page.textContent('.left tbody'), /main \(particles\.c:26\).*680 K/s);
    assert.equal(await page.$('nav a[data-tab=threads]'), null);
    await page.click('nav a[data-tab=overview]');
    assert.match(await page.textContent('.worst'), /58\.8 % particles\.c:10 move.*41\.2 % particles\.c:16 energy/s);
    await page.click('nav a[data-tab=phases]');
    await atLeast('.chart svg', 3);
    assert.match(await page.textContent('main'), /Functions.*move.*energy|Functions.*energy.*move/s);
    await page.click('main button:text("Whole run")');
    await page.click('nav a[data-tab=code]');
    assert.match(await page.textContent('.left tbody'), /particles\.c:21/);
    // Early windows have nothing of energy().
    await open('particles.html', 'from=2&to=5&tab=code&size=32768');
    assert.doesNotMatch(await page.textContent('.left tbody'), /particles\.c:16/);
  },
  async 'data: members by misses, and an icicle from object to member to line'() {
    await open('particles.html', 'tab=data');
    assert.match(await page.textContent('#detail'), /Members of particle 64 B.*particle\.x \+0.*1 M.*particle\.mass \+16.*800 K/s);
    await page.click('.segments button:text("Icicle")');
    await atLeast('.flame-box', 5);
    const labels = await page.$$eval('.flame-box', list => list.map(box => box.getAttribute('aria-label')));
    for (const wanted of [/^heap main \(particles\.c:26\): 1\.8 M misses/, /^particle\.x: 1 M misses/, /^particle\.mass: 800 K misses/, /^particles\.c:16: 800 K misses/])
      assert.ok(labels.some(label => wanted.test(label)), `${wanted}: ${labels.join('\n')}`);
    await open('particles.html', 'tab=code');
    assert.match(await page.textContent('#detail'), /member particle\.x/);
  },
  async 'a stretch of phases shows in the overview'() {
    await open('particles.html', 'from=0&to=4');
    const quiet = await hitRate();
    await open('particles.html', 'from=12&to=15');
    assert.ok(await hitRate() < quiet - 0.1);
    await page.click('main button:text("Whole run")');
    await page.waitForFunction(() => !location.hash.includes('from='));
  },
  async 'the flame graph zooms, searches and shows callers and callees'() {
    await open('particles.html', 'tab=code&pane=flame');
    await atLeast('.flame-box', 4);
    await page.fill('[aria-label="Search the flame graph"]', 'energy');
    assert.match(await page.textContent('.filters output'), /% of misses match/);
    await page.fill('[aria-label="Search the flame graph"]', 'nothing like it');
    assert.match(await page.textContent('.filters output'), /no match/);
    await page.fill('[aria-label="Search the flame graph"]', '');
    await page.click('.flame-box:text("energy")');
    await page.click('button:text("Callers and callees")');
    await atLeast('.flame', 2);
    await page.waitForFunction(() => document.querySelectorAll('.flame')[0].textContent.includes('main'));
  },
  async 'terminal, page and JSON say the same'() {
    const files = {'one.html': join(data, 'base.json'), 'particles.html': join(scratch, 'particles.json'), 'few.html': join(scratch, 'few.json'), 'beyond.html': join(scratch, 'beyond.json'), 'words.html': join(scratch, 'words.json')};
    for (const [html, json] of Object.entries(files)) {
      const found = JSON.parse(revisit('report', json, '--json', ...caches));
      const text = revisit('report', json, ...caches).replace(/\s+/g, ' ');
      await open(html);
      const inPage = await page.evaluate(() => JSON.parse(document.getElementById('data').textContent).profiles[0].report);
      assert.deepEqual(inPage, found, html);
      const says = (text, sentence) => assert.ok(text.includes(sentence.replace(/\s+/g, ' ')), `${html}: "${sentence}" is missing`);
      const shown = async () => (await page.textContent('#app')).replace(/\s+/g, ' ');
      says(text, found.lead);
      says(await shown(), found.lead);
      for (const set of found.working_sets) says(text, `a cache of ${set.size} brings misses from`);
      for (const site of (found.sites ?? []).slice(0, 3)) {
        says(text, site.place);
        if (site.reason) says(text, site.reason);
        if (site.reason) says(await shown(), site.reason);
      }
      // The page computes rates anew, because sliders change them: they must come out the same.
      for (const cache of found.caches) {
        await open(html, `size=${cache.bytes}&ways=${cache.ways}`);
        assert.ok(Math.abs(await hitRate() - cache.hit_rate) < 1e-7, cache.name);
        const error = await page.$eval('#hit-rate', element => Number(element.dataset.error));
        assert.ok(Math.abs(error - (cache.error ?? 0)) < 1e-7, `${html} ${cache.name}: ± ${error} and ${cache.error}`);
        // The row of the table says what the terminal's line says: "± 12 %", or that it is not known.
        const row = await page.textContent(`.rates tr:has(th:text-is("${cache.name}"))`);
        const line = revisit('report', json, ...caches).split('\n').find(one => new RegExp(`^  ${cache.name} .* B lines `).test(one));
        assert.equal(row.match(/± \S+ %|not known.*|simulated/)?.[0], line.match(/± \S+ %|not known.*|simulated/)?.[0], `${html} ${cache.name}`);
      }
      await open(html, 'tab=advice');
      const level = found.caches[found.caches.length > 1 ? 1 : 0];
      for (const [i, one] of (level?.advice ?? []).entries()) {
        for (const part of [one.what, one.where, one.gain_text, one.help?.[0]]) {
          if (!part) continue;
          says(await shown(), part);
          if (i < 3 && !found.few_samples) says(text, part);
        }
      }
      // Medians of the misses, where the page has sites and pairs to show them.
      if (html !== 'particles.html') continue;
      await open(html, 'tab=code');
      const why = await page.textContent('#detail .table tbody tr.picked');
      const reason = found.sites.find(site => site.place.includes(':10')).reason;
      assert.match(reason, new RegExp('reused after ' + why.match(/(\d[\d.]* [KM]iB)/)[1]));
    }
  },
  async 'caches with other lines than the profile\'s blocks have no hit rates'() {
    await open('words.html');
    assert.equal(await page.$$eval('.rates', list => list.length), 0);
    assert.match(await page.textContent('main'), /this profile counts blocks of 8 B/);
    assert.doesNotMatch(revisit('report', 'words.json', ...caches), /64 B lines +hit/);
  },
  async 'below 100 samples the page leads with that'() {
    await open('few.html');
    assert.match(await page.textContent('.headline'), /^60 samples: too few/);
    // Error bars end at the axis.
    const whiskers = await page.evaluate(() => [...document.querySelectorAll('.whisker')].map(one => one.getBoundingClientRect().bottom -
      Math.max(...[...one.ownerSVGElement.querySelectorAll('.column')].map(bar => bar.getBoundingClientRect().bottom))));
    assert.ok(whiskers.length > 0 && whiskers.every(below => below < 1.5), whiskers.join(' '));
    assert.doesNotMatch(await page.textContent('.hero .answer'), /%/);
  },
  async 'pages, TLBs and line use are on the page as in the terminal'() {
    await open('lines.html');
    const found = JSON.parse(revisit('report', 'lines.json', '--json', ...caches, ...tlbs));
    const terminal = revisit('report', 'lines.json', ...caches, ...tlbs), shown = await page.textContent('main');
    for (const text of [terminal, shown]) {
      assert.ok(text.includes(found.huge_pages), found.huge_pages);
      assert.ok(text.includes(found.line_use), found.line_use);
    }
    assert.match(found.huge_pages, /20\.00 % of accesses miss the TLB of 1536 entries with 4 KiB pages \(100 K touched\), 0\.00 %/);
    await open('lines.html', 'tab=code');
    assert.match(await page.textContent('.left tbody tr.picked'), /16 of 64 B/);
    assert.match(await page.textContent('#detail'), /16 of 64 B \(25 %\) of each of the 1 M lines fetched are used before they leave a cache of 1M:8:64/);
    await open('lines.html', 'tab=advice');
    assert.match(await page.textContent('.findings'), /split particles\.c:10 move uses 16 of 64 bytes .*, always bytes 0–15/);
    assert.match(await page.textContent('.findings'), /huge pages/);
  },
  async 'machine code comes along when asked for'() {
    await open('code.html', 'tab=code');
    await page.click('#detail summary:text("Disassembly")');
    await atLeast('#detail [aria-label="Disassembly"] tbody tr.picked', 1);  // drawn when it is opened
    const rows = await page.$$eval('#detail [aria-label="Disassembly"] tbody tr.picked td.text', list => list.map(cell => cell.textContent));
    assert.ok(rows.length === 1 && rows[0].length > 2, rows.join());
    assert.doesNotMatch(readFileSync(join(scratch, 'particles.html'), 'utf8'), /"listings":\[\[/);
  },
  async 'first touches have their call paths in the flame graph'() {
    await open('lines.html', 'tab=code&pane=flame');
    await atLeast('.flame-box', 4);
    const labels = await page.$$eval('.flame-box', list => list.map(box => box.getAttribute('aria-label')));
    assert.ok(labels.some(label => /^move: 1 M misses/.test(label)), labels.join('\n'));  // 900 K and 100 K first touches
  },
  async 'compare has a flame graph of the differences'() {
    await open('moved.html', 'tab=compare');
    await atLeast('.flame-box.changed', 4);
    const labels = await page.$$eval('.flame-box.changed', list => list.map(box => box.getAttribute('aria-label')));
    assert.ok(labels.some(label => /^move: 300 K → 900 K misses \(\+600 K\)/.test(label)), labels.join('\n'));
    assert.ok(labels.some(label => /^energy: 800 K → 800 K misses \(\+0\)/.test(label)));
  },
  async 'advice speaks of the worst pair'() {
    await open('one.html', 'tab=advice');
    await page.click('.segments button:text("L1")');
    const findings = await page.textContent('.findings');
    assert.match(findings, /matmul\.c:14 multiply reuses its data after eviction/);
    assert.match(findings, /tile the loops/);
    assert.match(findings, /Gain: at best \d+ % fewer misses/);
    await page.click('a:text("Show the code")');
    assert.match(await page.textContent('#detail h3'), /matmul\.c:14/);
  },
  async 'compare lays profiles over each other'() {
    await open('two.html', 'tab=compare&size=262144');
    const text = await page.textContent('main');
    assert.match(text, /base/);
    assert.match(text, /tiled/);
    assert.match(text, /What moved by function/);
    assert.match(text, /−104 K/);
    // Hit rates and S are those that `revisit diff` prints.
    const diff = JSON.parse(revisit('diff', join(data, 'base.json'), join(data, 'tiled.json'), '--json', ...caches));
    const row = name => page.$$eval('tbody tr', (rows, name) => [...rows.find(row => row.firstChild.textContent === name).children].map(cell => cell.textContent), name);
    assert.equal((await row('S against base'))[2], diff.S.toFixed(4));
    const hits = JSON.parse(revisit('report', join(data, 'tiled.json'), '--json', ...caches)).caches;
    for (const cache of hits) assert.equal((await row(`${cache.name} hits`))[2], `${(100 * cache.hit_rate).toFixed(2)} %`);
    await atLeast('polyline', 2);
    await page.selectOption('select', '1');
    assert.match(page.url(), /tab=compare/);
  },
  async 'names stay text, whatever is in them'() {
    for (const tab of ['overview', 'code', 'data', 'threads', 'phases', 'advice']) {
      await open('hostile.html', 'size=65536&tab=' + tab);
      assert.ok((await page.textContent('main')).length > 100, tab);
      if (tab === 'code') {
        await page.click('.left .pick');
        await page.click('#detail .pick');
        for (const by of ['loop', 'function', 'file', 'module', 'site']) await page.click(`.segments button:text-is("${by}")`);
      }
      if (tab === 'phases') await atLeast('.chart svg', 2);
      assert.equal(await page.evaluate('window.hacked'), undefined, tab);
      assert.equal(await page.$$eval('img, #app script, #app iframe', list => list.length), 0, tab);
    }
    await open('hostile.html', 'size=65536&tab=data');
    assert.match(await page.textContent('main'), /<\/script><script>window\.hacked = 1<\/script>/);
    const csv = await download(() => page.click('button:text("CSV")'));
    assert.match(csv, /"'=HYPERLINK/);
    await open('hostile.html', 'tab=<img src=x onerror=window.hacked=6>&pick=%3Cscript%3E&size=NaN&ways=-4&profile=99&threads=0&from=9&to=2&pair=77');
    assert.equal(await page.evaluate('window.hacked'), undefined);
    assert.match(await page.textContent('main'), /Which cache sizes would help/);
  },
  async 'fits a telephone, light and dark'() {
    await page.setViewportSize({width: 400, height: 800});
    await page.emulateMedia({colorScheme: 'dark'});
    for (const tab of ['overview', 'code', 'data', 'advice', 'compare', 'phases', 'threads', 'sharing']) {
      await open(['advice', 'compare'].includes(tab) ? 'two.html' : tab === 'overview' ? 'lines.html' : 'particles.html', 'tab=' + tab);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 400, tab);
    }
    await open('particles.html', 'tab=code');
    const left = await page.locator('.left').boundingBox(), right = await page.locator('.right').boundingBox();
    assert.ok(right.y >= left.y + left.height, 'panes stack');
    await page.setViewportSize({width: 1280, height: 900});
  },
  async 'meets WCAG AA on every tab, light and dark'() {
    const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
    const views = ['overview', 'advice', 'code', 'code&pane=source', 'code&pane=flame', 'data', 'data&pane=flame', 'threads', 'sharing', 'phases', 'compare'];
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({colorScheme});
      for (const tab of views) {
        await open(tab === 'compare' ? 'two.html' : 'particles.html', 'tab=' + tab);
        await page.waitForTimeout(150);
        await page.evaluate(axe);
        const found = await page.evaluate(() => window.axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']}));
        assert.deepEqual(found.violations.map(one => `${one.id}: ${one.nodes[0].html.slice(0, 120)} ${one.nodes[0].failureSummary.slice(0, 200)}`), [], `${tab} ${colorScheme}`);
      }
    }
  },
};

const caches = ['--cache', 'L1=32K:8:64', '--cache', 'L2=1M:8:64'];
const tlbs = ['--cache', '6M:12:4K', '--cache', '3G:12:2M'];

// The same program with pages counted, line use, and call paths of first touches.
function withLines() {
  const profile = newcomer(scratch), {accesses} = profile, {cold, invalidated} = profile.reuse;
  const pages = far => ({cold: 0, invalidated: 0, bins: far ? [[0, 1, 0.8 * accesses], [100000, 100001, 0.2 * accesses]] : [[0, 1, accesses]]});
  profile.granularities = [{granularity: 64, distinct: 100000, reuse: profile.reuse}, {granularity: 4096, distinct: 100000, reuse: pages(true)},
                           {granularity: 2 << 20, distinct: 200, reuse: pages(false)}];
  Object.assign(profile.sites[0], {fetches: 1e6, used_bytes: 16e6, used_parts: [[0, 16]]});
  profile.line_use = {cache: '1M:8:64', line: 64, fetches: 1e6, used_bytes: 16e6, used_parts: [[0, 16]]};
  profile.touches = [{site: 1, context: 2, cold: 100000}, {site: 3, cold: 8, invalidated: 60000}];
  assert.ok(cold + invalidated > 0);
  return profile;
}
revisit('report', join(data, 'base.json'), '-o', 'one.html', ...caches);
revisit('report', join(data, 'base.json'), join(data, 'tiled.json'), '-o', 'two.html', ...caches);
writeFileSync(join(scratch, 'hostile.json'), JSON.stringify(hostileProfile()));
revisit('report', 'hostile.json', '--sources', '-o', 'hostile.html', ...caches);
writeFileSync(join(scratch, 'matmul.c'), Array.from({length: 40}, (_, i) => i === 13 ? 'int the_very_line; /* of interest */' : `line ${i + 1}`).join('\n'));
writeFileSync(join(scratch, 'here.json'), readFileSync(join(data, 'base.json'), 'utf8').replaceAll('/src/matmul.c', join(scratch, 'matmul.c')));
revisit('report', 'here.json', '--sources', '-o', 'sources.html', ...caches);
revisit('report', 'here.json', '-o', 'plain.html', ...caches);
writeFileSync(join(scratch, 'particles.c'), kSource);
writeFileSync(join(scratch, 'particles.json'), JSON.stringify(newcomer(scratch)));
revisit('report', 'particles.json', '--sources', '-o', 'particles.html', ...caches);
const inlined = newcomer(scratch);
for (const site of inlined.sites) if ([10, 16].includes(site.line)) site.inlined = [{function: 'main', file: site.file, line: 26}];
writeFileSync(join(scratch, 'inlined.json'), JSON.stringify(inlined));
revisit('report', 'inlined.json', '--sources', '-o', 'inlined.html', ...caches);
writeFileSync(join(scratch, 'lines.json'), JSON.stringify(withLines()));
revisit('report', 'lines.json', '-o', 'lines.html', ...caches, ...tlbs);
// Any instruction of a real program will do: its first one.
const program = readFileSync(process.argv[2]), real = newcomer(scratch);
Object.assign(real.sites[0], {module: process.argv[2], offset: Number(program.readBigUInt64LE(24))});
writeFileSync(join(scratch, 'code.json'), JSON.stringify(real));
revisit('report', 'code.json', '--disassembly', '-o', 'code.html', ...caches);
writeFileSync(join(scratch, 'before.json'), JSON.stringify(newcomer(scratch, {moved: 300000})));
revisit('report', 'before.json', 'particles.json', '-o', 'moved.html', ...caches);
writeFileSync(join(scratch, 'words.json'), JSON.stringify({...newcomer(scratch), granularity: 8}));
revisit('report', 'words.json', '-o', 'words.html', ...caches);
const few = {...newcomer(scratch, {sampled: true}), sampled: {period: 100000, samples: 60, pruned: 0}};
few.reuse.error.cold = 3 * few.reuse.cold;  // an error larger than what it is of
writeFileSync(join(scratch, 'few.json'), JSON.stringify(few));
revisit('report', 'few.json', '-o', 'few.html', ...caches);
// Misses of a cache have an error of their own, larger or smaller than that of the bins together.
const beyond = newcomer(scratch, {sampled: true});
beyond.reuse.error.beyond = [4000000, 4000000];  // no rate is known
writeFileSync(join(scratch, 'beyond.json'), JSON.stringify(beyond));
revisit('report', 'beyond.json', '-o', 'beyond.html', ...caches);
await run(tests);

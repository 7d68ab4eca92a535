// The report page in a real browser, as a user has it: opened from disk, no network.
//
//   node test/page.test.mjs REVISIT_PROGRAM          exit 77: skipped, with the reason
import {existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {execFileSync} from 'node:child_process';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {tmpdir} from 'node:os';
import assert from 'node:assert/strict';

const program = process.argv[2];
const here = dirname(fileURLToPath(import.meta.url));
const data = join(here, '../../tests/golden/data');

function skip(reason) {
  console.log('skipped: ' + reason);
  process.exit(77);
}
const chromiumPath = process.env.CHROMIUM ?? '/usr/bin/chromium';
if (!existsSync(chromiumPath)) skip('chromium is not installed');
let chromium;
try {
  ({chromium} = await import('playwright-core'));
} catch {
  skip('playwright-core is not installed (npm ci in web/)');
}

const scratch = mkdtempSync(join(tmpdir(), 'revisit-page-'));
const revisit = (...words) => execFileSync(program, words, {cwd: scratch, encoding: 'utf8'});

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

const browser = await chromium.launch({executablePath: chromiumPath, args: [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync']});
const context = await browser.newContext({viewport: {width: 1280, height: 900}, acceptDownloads: true, offline: true});
const page = await context.newPage();
const complaints = [];
page.on('console', message => { if (['error', 'warning'].includes(message.type())) complaints.push(message.text()); });
page.on('pageerror', error => complaints.push(error.message));
page.on('request', request => { if (!/^(file|data|blob):/.test(request.url())) complaints.push('asked for ' + request.url()); });

const open = async (file, fragment = '') => {
  await page.goto('about:blank');
  await page.goto(`file://${join(scratch, file)}#${fragment}`);
};
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
    assert.match(await page.textContent('dl'), /392 K/);
    await atLeast('svg', 3);
    assert.match(await page.title(), /matmul/);
  },
  async 'hit rates equal those of revisit cache to six digits'() {
    const specs = [[32768, 8, 64], [65536, 2, 64], [262144, 16, 64], [1048576, 8, 64], [524288, 0, 64], [786432, 12, 64], [65536, 32, 32], [4096, 1, 64]];
    const args = specs.flatMap(([size, ways, line]) => ['--cache', `${size}:${ways || 'full'}:${line}`]);
    const expected = JSON.parse(revisit('cache', join(data, 'base.json'), '--json', ...args)).caches;
    for (const [i, [size, ways, line]] of specs.entries()) {
      await open('one.html', `size=${size}&ways=${ways}&line=${line}`);
      assert.ok(Math.abs(await hitRate() - expected[i].hit_rate) < 1e-7, `${expected[i].name}: ${await hitRate()} and ${expected[i].hit_rate}`);
    }
    // Two threads that share 64 KiB have 32 KiB each.
    await open('one.html', 'size=65536&ways=8&line=64&threads=2');
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
    const rows = () => page.$$eval('section.card:nth-of-type(1) tbody tr', list => list.length);
    assert.equal(await rows(), 2);
    await page.fill('[data-filter]', 'fill');
    await page.waitForFunction(() => location.hash.includes('filter=fill'));
    assert.equal(await rows(), 1);
    await page.fill('[data-filter]', '');
    await page.waitForFunction(() => !location.hash.includes('filter='));
    await page.click('.segments button:text("loop")');
    assert.match(await page.textContent('tbody'), /loop at matmul\.c:13 multiply.*outside loops in fill/);
    await page.click('.segments button:text("function")');
    assert.match(await page.textContent('tbody'), /multiply/);
    await page.click('.pick');
    assert.match(await page.textContent('#detail'), /Use → reuse pairs/);
    await page.click('#detail .pick');
    const paths = await page.textContent('.paths');
    assert.match(paths, /multiply matmul\.c:14/);
    assert.match(paths, /Both are called from.*main/);
    const json = JSON.parse(await download(() => page.click('section.card button:text("JSON")')));
    assert.equal(json[0].function, 'multiply');
    assert.ok(json[0].misses > 100000);
    await atLeast('.flame-box', 4);
  },
  async 'sources come along when asked for, and only then'() {
    await open('sources.html', 'tab=code');
    await page.click('.pick');
    assert.match(await page.textContent('.source'), /the very line of interest/);
    await open('plain.html', 'tab=code');
    await page.click('.pick');
    assert.match(await page.textContent('#detail'), /The source is not in this page/);
  },
  async 'advice speaks of the worst pair'() {
    await open('one.html', 'tab=advice&size=262144');
    const findings = await page.textContent('.findings');
    assert.match(findings, /matmul\.c:14 comes back too late for its own data/);
    assert.match(findings, /Tile the loops/);
    await page.click('button:text("Show the code")');
    assert.match(await page.textContent('#detail h3'), /matmul\.c:14/);
  },
  async 'compare lays profiles over each other'() {
    await open('two.html', 'tab=compare&size=262144');
    const text = await page.textContent('main');
    assert.match(text, /base/);
    assert.match(text, /tiled/);
    assert.match(text, /What moved by function/);
    assert.match(text, /−104 K/);
    await atLeast('polyline', 2);
    await page.selectOption('select', '1');
    assert.match(page.url(), /tab=compare/);
  },
  async 'names stay text, whatever is in them'() {
    for (const tab of ['overview', 'code', 'data', 'threads', 'phases', 'advice']) {
      await open('hostile.html', 'size=65536&tab=' + tab);
      assert.ok((await page.textContent('main')).length > 100, tab);
      if (tab === 'code') {
        await page.click('.pick');
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
    await open('hostile.html', 'tab=<img src=x onerror=window.hacked=6>&pick=%3Cscript%3E&size=NaN&ways=-4&profile=99&line=0&threads=0');
    assert.equal(await page.evaluate('window.hacked'), undefined);
    assert.match(await page.textContent('main'), /What would a cache/);
  },
  async 'fits a telephone, light and dark'() {
    await page.setViewportSize({width: 400, height: 800});
    await page.emulateMedia({colorScheme: 'dark'});
    for (const tab of ['overview', 'code', 'data', 'advice', 'compare']) {
      await open('two.html', 'tab=' + tab);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 400, tab);
    }
    await page.setViewportSize({width: 1280, height: 900});
  },
};

let failed = 0;
try {
  const caches = ['--cache', 'L1=32K:8:64', '--cache', 'L2=1M:8:64'];
  revisit('report', join(data, 'base.json'), '-o', 'one.html', ...caches);
  revisit('report', join(data, 'base.json'), join(data, 'tiled.json'), '-o', 'two.html', ...caches);
  writeFileSync(join(scratch, 'hostile.json'), JSON.stringify(hostileProfile()));
  revisit('report', 'hostile.json', '--sources', '-o', 'hostile.html', ...caches);
  writeFileSync(join(scratch, 'matmul.c'), Array.from({length: 40}, (_, i) => i === 13 ? 'the very line of interest' : `line ${i + 1}`).join('\n'));
  writeFileSync(join(scratch, 'here.json'), readFileSync(join(data, 'base.json'), 'utf8').replaceAll('/src/matmul.c', join(scratch, 'matmul.c')));
  revisit('report', 'here.json', '--sources', '-o', 'sources.html', ...caches);
  revisit('report', 'here.json', '-o', 'plain.html', ...caches);
  for (const [name, run] of Object.entries(tests)) {
    complaints.length = 0;
    try {
      await run();
      assert.deepEqual(complaints, []);
      console.log('ok      ' + name);
    } catch (error) {
      ++failed;
      console.log(`FAILED  ${name}\n${error.message}\n${complaints.join('\n')}`);
    }
  }
} finally {
  await browser.close();
  rmSync(scratch, {recursive: true, force: true});
}
process.exit(failed ? 1 : 0);

// How large, how quick: the page of a profile with 10^5 sites and 10^6 pairs.
//
//   node bench.mjs REVISIT_PROGRAM [SITES PAIRS]
//
// Times are wall clock and, because machines are shared, processor time: of the program, and of the page's
// thread until the first chart or table stands, and for each move of a slider, drawing included.
import {chromium} from 'playwright-core';
import {closeSync, mkdtempSync, openSync, rmSync, statSync, writeSync} from 'node:fs';
import {spawnSync} from 'node:child_process';
import {join} from 'node:path';
import {tmpdir} from 'node:os';

const [program, sites = 100000, pairs = 1000000] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'revisit-page-bench-'));
process.on('exit', () => rmSync(folder, {recursive: true, force: true}));
let seed = 12345;
const random = below => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;

function writeProfile(path) {
  const file = openSync(path, 'w');
  let text = '';
  const put = piece => { if ((text += piece).length > 1 << 20) { writeSync(file, text); text = ''; } };
  const bins = weight => {
    const low = 1 << random(20);
    return `{"cold":${random(9)},"invalidated":0,"bins":[[0,1,${weight * 3}],[${low},${low * 2},${weight}]]}`;
  };
  put(`{"schema":"revisit/profile@1","method":"exact","model":"single","granularity":64,"accesses":1e10,"distinct":4e6,"reuse":{"cold":4000000,"invalidated":0,"bins":[[0,1,5000000000]`);
  for (let low = 1; low < 1 << 22; low *= 2)
    for (let part = 0; part < (low < 8 ? 1 : 8); ++part) {
      const width = low < 8 ? low : low / 8;
      put(`,[${low + part * width},${low + (part + 1) * width},${1e7 + random(1e7)}]`);
    }
  put(']},"sites":[');
  for (let i = 0; i < sites; ++i)
    put(`${i ? ',' : ''}{"id":${i},"module":"/usr/lib/lib${i % 40}.so","offset":${i * 4},"function":"function_${i >> 4}(int, char const*)","file":"/src/module${i % 40}/file${i >> 8}.cpp","line":${i % 900 + 1},"accesses":${random(1e6)},"reuse":${bins(random(1e5))}}`);
  put('],"pairs":[');
  for (let i = 0; i < pairs; ++i) {
    const count = random(1e5), low = 1 << random(20);
    put(`${i ? ',' : ''}{"use":${random(sites)},"reuse":${random(sites)},"count":${count},"distances":{"cold":0,"invalidated":0,"bins":[[${low},${low * 2},${count}]]}}`);
  }
  put(']}\n');
  writeSync(file, text);
  closeSync(file);
}

const profile = join(folder, 'big.json'), report = join(folder, 'big.html');
writeProfile(profile);
const runs = [1, 2, 3].map(() => {
  const done = spawnSync('bash', ['-c', `TIMEFORMAT='%R %U %S'; time "$0" report "$1" --quiet -o "$2"`, program, profile, report], {encoding: 'utf8'});
  if (done.status !== 0) throw new Error(done.stderr);
  const [wall, user, system] = done.stderr.trim().split(/\s+/).map(Number);
  return {wall, cpu: user + system};
});
const least = key => Math.min(...runs.map(run => run[key]));
const mb = path => (statSync(path).size / 1e6).toFixed(1);
console.log(`profile ${mb(profile)} MB, page ${mb(report)} MB, written in ${least('cpu').toFixed(2)} s of processor time, ${least('wall').toFixed(2)} s wall (best of 3)`);

const browser = await chromium.launch({executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync']});
for (const tab of ['overview', 'code']) {
  const page = await browser.newPage({viewport: {width: 1280, height: 900}});
  page.setDefaultTimeout(0);
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', {timeDomain: 'threadTicks'});
  const begin = performance.now();
  await page.goto(`file://${report}#tab=${tab}`);
  await page.waitForSelector(tab === 'overview' ? '.hero svg' : '.pick');
  const opened = performance.now() - begin;
  const spent = async () => (await session.send('Performance.getMetrics')).metrics.find(metric => metric.name === 'TaskDuration').value;
  const opening = await spent();
  await page.waitForTimeout(1000);
  const before = await spent(), moves = 20;
  const times = await page.evaluate(async moves => {
    const slider = document.querySelector('[data-slider=size]'), times = [];
    for (let i = 0; i < moves; ++i) {
      const from = performance.now();
      slider.value = String(Number(slider.value) + (i < moves / 2 ? -1 : 1));
      slider.dispatchEvent(new Event('input', {bubbles: true}));
      await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
      times.push(performance.now() - from);
    }
    return times.sort((a, b) => a - b);
  }, moves);
  const move = (await spent() - before) / moves;
  console.log(`${tab}: opens in ${opening.toFixed(2)} s of processor time, ${(opened / 1000).toFixed(2)} s wall; ` +
              `a slider's move takes ${(1000 * move).toFixed(1)} ms of processor time, ${times[moves >> 1].toFixed(0)} ms wall (median)`);
  await page.close();
}
await browser.close();

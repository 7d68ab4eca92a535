// The ten questions a newcomer asks, each answered within three clicks from the first screen, by clicking only what is
// visible at 1280 × 800.
//
//   node test/questions.test.mjs REVISIT_PROGRAM [FOLDER_FOR_PICTURES]          exit 77: skipped, with the reason
import {join} from 'node:path';
import {mkdirSync, writeFileSync} from 'node:fs';
import assert from 'node:assert/strict';
import {begin} from './browser.mjs';
import {kSource, profile} from './newcomer.mjs';

const {revisit, scratch, page, run, open} = await begin(process.argv[2], {width: 1280, height: 800});
const pictures = process.argv[3];
if (pictures) mkdirSync(pictures, {recursive: true});

let clicks = 0;
const inside = box => box && box.x >= 0 && box.y >= 0 && box.x + 1 <= 1280 && box.y + Math.min(box.height, 20) <= 800;
// Clicks where a hand would: in the middle of what is seen.
async function click(locator) {
  const box = await locator.first().boundingBox();
  assert.ok(inside(box), `${locator} is not on the screen: ${JSON.stringify(box)}`);
  await page.mouse.click(box.x + Math.min(box.width / 2, 60), box.y + Math.min(box.height / 2, 10));
  ++clicks;
}
async function sees(locator, pattern) {
  await locator.first().waitFor({state: 'visible'});
  assert.match(await locator.first().textContent(), pattern);
  assert.ok(inside(await locator.first().boundingBox()), `${locator} is below the fold`);
}
const tab = name => click(page.locator(`nav a[data-tab=${name}]`));

const questions = {
  async 'Which line, and why?'() {
    await open('today.html');
    await click(page.locator('.worst a'));
    await sees(page.locator('#detail h3'), /particles\.c:10 move/);
    await sees(page.locator('#detail h4', {hasText: 'Why'}), /who used the data before/);
    await sees(page.locator('#detail .table tbody tr'), /particles\.c:16 energy/);
    await sees(page.locator('.paths p', {hasText: 'meet'}), /The two meet in main \(particles\.c:28\)/);
  },
  async 'Which data?'() {
    await open('today.html');
    await tab('data');
    await sees(page.locator('#detail h3'), /main \(particles\.c:26\) heap/);
    await sees(page.locator('.left tbody tr.picked'), /6\.1 MiB/);
  },
  async 'Which member?'() {
    await open('today.html');
    await tab('data');
    await sees(page.locator('#detail [aria-label="Misses by member of particle"] tbody tr', {hasText: 'particle.x'}), /particle\.x \+0\s*1 M/);
    await sees(page.locator('#detail [aria-label="Misses by member of particle"] tbody tr', {hasText: 'particle.mass'}), /\+16\s*800 K/);
  },
  async 'What would 2 MB more L2 do?'() {
    await open('today.html');
    const chart = page.locator('.hero .chart svg');
    await chart.waitFor();
    // 3 MiB on the logarithmic axis from 64 B to 32 MiB.
    const box = await chart.boundingBox(), left = 46, right = box.width - 14;
    const x = box.x + left + (right - left) * Math.log(3 * 2 ** 20 / 64) / Math.log(2 ** 25 / 64);
    assert.ok(inside({x, y: box.y + 40, width: 1, height: 1}));
    await page.mouse.move(x, box.y + 40);
    await page.mouse.click(x, box.y + 40);
    ++clicks;
    await sees(page.locator('[data-slider=size] + output').first(), /3 MiB/);
    await sees(page.locator('.answer'), /−[\d.]+ points against L2/);
  },
  async 'Which thread hurts which?'() {
    await open('today.html');
    await tab('sharing');
    await sees(page.locator('.matrix'), /writing thread.*040 K.*120 K/s);
    await sees(page.locator('.bytes'), /\+0w 0\+8w 1/);
    await sees(page.locator('#detail .gain'), /align what each writes to 64 B/);
  },
  async 'When?'() {
    await open('today.html');
    await tab('phases');
    await page.locator('.chart svg').first().waitFor();
    await click(page.locator('.chart svg').first());
    await sees(page.locator('main section p b'), /windows \d+ to \d+ of 20/);
    await tab('code');
    await sees(page.locator('.stretch'), /windows \d+ to \d+ of 20 alone/);
  },
  async 'What changed since yesterday?'() {
    await open('compare.html');
    await tab('compare');
    await sees(page.locator('main h3', {hasText: 'What moved by function'}), /What moved/);
    await sees(page.locator('main tr', {hasText: 'move'}), /\+\d/);
  },
  async 'Is this real, or noise?'() {
    await open('sampled.html');
    await sees(page.locator('.headline'), /% ± 1 % of accesses miss L2/);
    await tab('code');
    await sees(page.locator('tr', {hasText: 'particles.c:26'}).locator('.weak'), /10/);
  },
  async 'What should I do first?'() {
    await open('today.html');
    await sees(page.locator('section', {hasText: 'What to do first'}), /reorder particles\.c:10 move reuses heap main.*Gain: at best \d+ % fewer misses.*Try:/s);
  },
  async 'How was this measured?'() {
    await open('sampled.html');
    await click(page.locator('.measured summary'));
    await sees(page.locator('.measured dl'), /watchpoints.*2\.08 K, each standing for 5 K accesses.*95 % half-widths.*instructions, counted/s);
  },
};

const caches = ['--cache', 'L1=32K:8:64', '--cache', 'L2=1M:8:64', '--cache', 'L3=32M:16:64'];
writeFileSync(join(scratch, 'particles.c'), kSource);
const write = (name, content) => writeFileSync(join(scratch, name), JSON.stringify(content));
write('today.json', profile(scratch));
write('yesterday.json', profile(scratch, {moved: 300000}));
write('sampled.json', profile(scratch, {sampled: true}));
revisit('report', 'today.json', '--sources', '--quiet', '-o', 'today.html', ...caches);
revisit('report', 'yesterday.json', 'today.json', '--sources', '--quiet', '-o', 'compare.html', ...caches);
revisit('report', 'sampled.json', '--sources', '--quiet', '-o', 'sampled.html', ...caches);

await run(Object.fromEntries(Object.entries(questions).map(([question, answer]) => [question, async () => {
  clicks = 0;
  await answer();
  assert.ok(clicks <= 3, `${clicks} clicks`);
  if (pictures) await page.screenshot({path: join(pictures, question.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/-$/, '') + '.png')});
}])));

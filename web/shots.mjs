// Pictures of a report, for eyes: node shots.mjs REPORT.html FOLDER [FRAGMENT…]
import {chromium} from 'playwright-core';
import {basename, join, resolve} from 'node:path';

const [report, folder, ...fragments] = process.argv.slice(2);
const browser = await chromium.launch({executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync']});
for (const fragment of fragments.length ? fragments : ['tab=overview'])
  for (const width of [1280, 400])
    for (const colorScheme of ['light', 'dark']) {
      const page = await browser.newPage({viewport: {width, height: 900}, colorScheme});
      page.on('console', message => console.log(message.type(), message.text()));
      page.on('pageerror', error => console.log('error', error.message));
      await page.goto('file://' + resolve(report) + '#' + fragment);
      await page.waitForTimeout(300);
      const name = `${basename(report, '.html')}-${fragment.replace(/[^a-z]+/g, '-').slice(0, 40)}-${width}-${colorScheme}.png`;
      await page.screenshot({path: join(folder, name), fullPage: true});
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      if (wide > width) console.log(`${name}: ${wide} pixels wide`);
      await page.close();
    }
await browser.close();

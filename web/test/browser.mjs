// What the page's tests share: a headless Chromium without network, a scratch folder, a list of named tests.
import {existsSync, mkdtempSync, rmSync} from 'node:fs';
import {execFileSync} from 'node:child_process';
import {join} from 'node:path';
import {tmpdir} from 'node:os';
import assert from 'node:assert/strict';

function skip(reason) {
  console.log('skipped: ' + reason);
  process.exit(77);
}

export async function begin(program, viewport) {
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
  const browser = await chromium.launch({executablePath: chromiumPath, args: [
    '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync']});
  const context = await browser.newContext({viewport, acceptDownloads: true, offline: true});
  const page = await context.newPage();
  page.setDefaultTimeout(20000);
  const complaints = [];
  page.on('console', message => { if (['error', 'warning'].includes(message.type())) complaints.push(message.text()); });
  page.on('pageerror', error => complaints.push(error.message));
  page.on('request', request => { if (!/^(file|data|blob):/.test(request.url())) complaints.push('asked for ' + request.url()); });
  const open = async (file, fragment = '') => {
    await page.goto('about:blank');
    await page.goto(`file://${join(scratch, file)}#${fragment}`);
  };
  const run = async tests => {
    let failed = 0;
    try {
      for (const [name, test] of Object.entries(tests)) {
        complaints.length = 0;
        try {
          await test();
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
  };
  return {revisit, scratch, page, open, run};
}

// Installs what package-lock.json lists, for this machine, without npm: fetched from the registry, held against
// the lock's checksum, unpacked by tar.
import {execFileSync} from 'node:child_process';
import {createHash} from 'node:crypto';
import {mkdirSync, readFileSync, rmSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const registry = (process.env.npm_config_registry ?? 'https://registry.npmjs.org').replace(/\/$/, '');
const {packages} = JSON.parse(readFileSync(join(here, 'package-lock.json'), 'utf8'));
const fits = (list, value) => !list || list.includes(value);

async function install(folder, entry) {
  const name = folder.slice('node_modules/'.length);
  const url = `${registry}/${name}/-/${name.split('/').pop()}-${entry.version}.tgz`;
  const response = await fetch(url, {signal: AbortSignal.timeout(60_000)});
  if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
  const bytes = Buffer.from(await response.arrayBuffer());
  const [kind] = entry.integrity.split('-', 2);
  if (createHash(kind).update(bytes).digest('base64') !== entry.integrity.slice(kind.length + 1))
    throw new Error(`${url}: its ${kind} is not that of package-lock.json`);
  rmSync(join(here, folder), {recursive: true, force: true});
  mkdirSync(join(here, folder), {recursive: true});
  execFileSync('tar', ['-xz', '--strip-components=1', '-C', join(here, folder)], {input: bytes});
}

try {
  await Promise.all(Object.entries(packages)
    .filter(([folder, entry]) => folder && fits(entry.os, process.platform) && fits(entry.cpu, process.arch))
    .map(([folder, entry]) => install(folder, entry)));
} catch (error) {
  console.error(`${error.message}${error.cause ? `: ${error.cause.message}` : ''}`);
  process.exit(1);
}

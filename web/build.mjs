// Bundles src/ into one HTML file and writes it as a C++ source that holds its bytes.
//
//   node build.mjs OUTPUT_FOLDER
import {build} from 'esbuild';
import {mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const output = process.argv[2] ?? join(here, 'dist');
mkdirSync(output, {recursive: true});

const result = await build({
  entryPoints: {page: join(here, 'src/main.ts'), style: join(here, 'src/style.css')},
  bundle: true, minify: true, write: false, outdir: 'out', format: 'iife', target: ['es2020'], charset: 'utf8',
  legalComments: 'none', logLevel: 'warning',
});
const text = ending => result.outputFiles.find(file => file.path.endsWith(ending)).text;
const script = text('.js').replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--');
// The data goes where the mark is; see src/report/page.cpp.
const page = readFileSync(join(here, 'src/page.html'), 'utf8')
  .replace('/*style*/', () => text('.css'))
  .replace('/*script*/', () => script);
const bytes = Buffer.from(page, 'utf8');
let rows = '';
for (let at = 0; at < bytes.length; at += 32) rows += [...bytes.subarray(at, at + 32)].join(',') + ',\n';
writeFileSync(join(output, 'page.html'), bytes);
writeFileSync(join(output, 'page_html.cpp'), `// Made by web/build.mjs.
#include "report/page.h"
namespace revisit {
static const unsigned char kPage[] = {
${rows}0};
std::string_view page_template() {
    return {reinterpret_cast<const char*>(kPage), sizeof(kPage) - 1};
}
}  // namespace revisit
`);

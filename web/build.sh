#!/bin/sh
# Bundles the page into one HTML file, and that into a C++ source that holds its bytes. The bundler is esbuild: the
# one that npm installed here, else the machine's (Debian's package), else npm's is fetched now. Where there
# is none (no network) the program is built without the page, and the next build tries again.
#
#   build.sh OUTPUT_FOLDER [SOURCE_WITHOUT_PAGE]
set -u
cd "$(dirname "$0")"
output=${1:-dist}
mkdir -p "$output"
rm -f "$output/bundled"

bundler() {
    for found in node_modules/@esbuild/linux-*/bin/esbuild "$(command -v esbuild)"; do
        [ -x "$found" ] && "$found" --version >/dev/null 2>&1 && { echo "$found"; return; }
    done
}
# highlight.js alone, as package-lock.json has it: where esbuild is there, nothing else is needed to build the page,
# and CMake can fetch it where there is neither npm nor node.
fetch_highlighter() {
    entry=$(sed -n '/"node_modules\/highlight.js": {/,/}/p' package-lock.json)
    version=$(echo "$entry" | sed -n 's/.*"version": "\(.*\)".*/\1/p')
    hash=$(echo "$entry" | sed -n 's/.*"integrity": "sha512-\(.*\)".*/\1/p' | base64 -d | od -An -v -tx1 | tr -d ' \n')
    registry=${npm_config_registry:-https://registry.npmjs.org}
    echo "file(DOWNLOAD \"${registry%/}/highlight.js/-/highlight.js-$version.tgz\" highlight.tgz EXPECTED_HASH SHA512=$hash TIMEOUT 60)" >"$output/fetch.cmake"
    (cd "$output" && cmake -P fetch.cmake) && mkdir -p node_modules/highlight.js &&
        tar -C node_modules/highlight.js -xzf "$output/highlight.tgz" --strip-components=1 || rm -rf node_modules/highlight.js
}
esbuild=$(bundler)
if [ -n "$esbuild" ] && [ ! -e node_modules/highlight.js ]; then fetch_highlighter >"$output/fetch.log" 2>&1; fi
if [ -z "$esbuild" ] || [ ! -e node_modules/highlight.js ]; then
    sh packages.sh >"$output/packages.log" 2>&1 || tail -n 3 "$output/packages.log" >&2
    esbuild=$(bundler)
fi
if [ -z "$esbuild" ] || [ ! -e node_modules/highlight.js ]; then
    echo "warning: esbuild or highlight.js is missing and could not be fetched; the report page is left out" >&2
    cp "$2" "$output/page_html.cpp" && exit
fi
set -e
# In the names of esbuild 0.17, the oldest that a supported release has.
"$esbuild" src/main.ts src/style.css --bundle --minify --outdir="$output/bundle" --format=iife --target=es2020 --charset=utf8 \
    --legal-comments=none --log-level=warning
{ echo '<!-- Holds parts of highlight.js:' && sed 's/--/- -/g' node_modules/highlight.js/LICENSE && echo '-->'; } >"$output/bundle/license"
sed -e 's#</script#<\\/script#g' -e 's#<!--#<\\!--#g' "$output/bundle/main.js" >"$output/bundle/script"
# The data goes where page.html has its mark; see src/report/page.cpp.
awk -v folder="$output/bundle/" '
function put(file,    line) { while ((getline line <file) > 0) print line }
{
    while (match($0, /\/\*(style|script)\*\/|<!--license-->/)) {
        printf "%s", substr($0, 1, RSTART - 1)
        mark = substr($0, RSTART, RLENGTH)
        rest = substr($0, RSTART + RLENGTH)
        put(folder (mark ~ /style/ ? "style.css" : mark ~ /script/ ? "script" : "license"))
        $0 = rest
    }
    print
}' src/page.html >"$output/page.html"
{
    printf '// Made by web/build.sh.\n#include "report/page.h"\nnamespace revisit {\nstatic const unsigned char kPage[] = {\n'
    od -An -v -tu1 -w32 "$output/page.html" | sed 's/ \{1,\}/,/g; s/^,//; s/$/,/'
    printf '0};\nstd::string_view page_template() {\n    return {reinterpret_cast<const char*>(kPage), sizeof(kPage) - 1};\n}\n}  // namespace revisit\n'
} >"$output/page_html.cpp"
touch "$output/bundled"

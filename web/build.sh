#!/bin/sh
# Bundles the page into OUTPUT, installing the bundler first where it is missing or another version is
# wanted. Where that fails (no network) the program is built without the page.
#
#   build.sh OUTPUT_FOLDER SOURCE_WITHOUT_PAGE
set -u
cd "$(dirname "$0")"
mkdir -p "$1"
# npm trusts a list of its own, which lacks the certificate of a proxy that the machine's list has.
[ -n "${NODE_EXTRA_CA_CERTS:-}" ] || [ ! -e /etc/ssl/certs/ca-certificates.crt ] ||
    export NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >"$1/npm.log" 2>&1
    installed=$?
    [ $installed = 0 ] && touch node_modules/.package-lock.json
fi
if ! node build.mjs "$1" 2>"$1/bundle.log"; then
    cat "$1"/*.log >&2
    if [ "${installed:-0}" = 0 ]; then exit 1; fi
    echo "warning: npm could not install web/'s packages; the report page is left out" >&2
    cp "$2" "$1/page_html.cpp"
fi

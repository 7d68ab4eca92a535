#!/bin/sh
# Installs the packages of package-lock.json into node_modules where they are missing or others are wanted: with
# npm where there is one, else by fetch.mjs, because Debian's npm brings 400 packages of its own.
set -eu
cd "$(dirname "$0")"
[ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ] || exit 0
# npm trusts a list of its own, which lacks the certificate of a proxy that the machine's list has.
[ -n "${NODE_EXTRA_CA_CERTS:-}" ] || [ ! -e /etc/ssl/certs/ca-certificates.crt ] ||
    export NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
if command -v npm >/dev/null; then
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error --fetch-retries=1 --fetch-timeout=60000
elif command -v node >/dev/null; then
    node fetch.mjs
else
    echo "neither npm nor node is installed" >&2
    exit 1
fi
touch node_modules/.package-lock.json

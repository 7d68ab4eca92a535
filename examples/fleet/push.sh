#!/bin/sh
# Pushes a profile to a collector of continuous profiles that takes pprof over HTTP, as Pyroscope does.
#
#     push.sh PROFILE.json NAME URL      URL: http://pyroscope:4040
#
# The stacks have accesses and the misses of each cache as sample types, so that flame graphs of the collector
# show where the misses are. Failures of the collector are failures of this script.
set -eu
profile=$1 name=$2 url=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
revisit export "$profile" -o "$folder/profile.pb.gz"
until=$(date +%s)
curl --silent --show-error --fail --max-time 30 --form "profile=@$folder/profile.pb.gz" \
    "$url/ingest?name=$name&format=pprof&from=$((until - ${SECONDS_SAMPLED:-5}))&until=$until"

#!/bin/sh
# Samples a service that runs, a few seconds every few minutes, keeps the profiles and pushes each to a collector.
#
#     sample.sh PID NAME URL FOLDER [SECONDS [EVERY [TIMES]]]
#
# Profiles are named by host and time, so that those of many machines can lie in one folder and be merged:
#     find FOLDER -name '*.json' | revisit merge --runs --list - -o release.json
set -eu
pid=$1 name=$2 url=$3 folder=$4 seconds=${5:-5} every=${6:-300} times=${7:-0}
here=$(dirname "$0")
done=0
mkdir -p "$folder"
while [ -d "/proc/$pid" ]; do
    profile=$folder/$name-$(hostname)-$(date +%Y%m%dT%H%M%S).json
    if revisit profile --pid "$pid" --duration "${seconds}s" --quiet -o "$profile"; then
        # A collector that is down must not stop the sampling; the profile is kept.
        SECONDS_SAMPLED=$seconds sh "$here/push.sh" "$profile" "$name" "$url" || echo "not pushed: $profile" >&2
    fi
    done=$((done + 1))
    [ "$done" = "$times" ] && break
    sleep "$every"
done

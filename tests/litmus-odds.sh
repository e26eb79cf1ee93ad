#!/bin/bash
# In how many of 64 schedules of the simulator each racy litmus scenario shows a race, as a table for docs/litmus.md.
#
#   tests/litmus-odds.sh [--gsan PROGRAM] [--schedules N] [--jobs N]
set -u
here=$(cd "$(dirname "$0")" && pwd)
gsan=gsan schedules=64 jobs=1
while [ $# -gt 0 ]; do
    case $1 in
        --gsan) gsan=$2; shift 2 ;;
        --schedules) schedules=$2; shift 2 ;;
        --jobs) jobs=$2; shift 2 ;;
        *) echo "unknown option $1" >&2; exit 2 ;;
    esac
done

one() {
    local name found
    name=$(basename "$1" .toml)
    # The most frequent finding; a run that ends badly has none to show.
    found=$("$gsan" run "$1" --schedules "$schedules" 2> /dev/null |
        sed -n "s/.*found .* times\{0,1\}, in \([0-9]*\) of $schedules schedules.*/\1/p" | sort -n | tail -1)
    echo "| \`$name\` | ${found:-0} of $schedules |"
}
export -f one
export gsan schedules
echo "| scenario | shows in |"
echo "|---|---|"
printf '%s\0' "$here"/scenarios/litmus/*_racy.toml | xargs -0 -n 1 -P "$jobs" bash -c 'one "$1"' _ | sort

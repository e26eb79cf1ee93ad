#!/bin/bash
# Runs the programs of this folder and keeps the reports in results/.
#
#   run.sh [--device cuda|sim] [--gsan PROGRAM] [--schedules N] [--jobs N]
#
# The driver's compiler takes some ten milliseconds for each access: the jobs (8) keep as many processors busy.
#
# Exit code 0: nothing was reported of a program that races under no schedule. `gsan-oracle --gpu-judge FOLDER` says more.
set -u
here=$(cd "$(dirname "$0")" && pwd)
device=cuda gsan=gsan schedules=1 jobs=8
while [ $# -gt 0 ]; do
    case $1 in
        --device) device=$2; shift 2 ;;
        --gsan) gsan=$2; shift 2 ;;
        --schedules) schedules=$2; shift 2 ;;
        --jobs) jobs=$2; shift 2 ;;
        *) echo "unknown option $1" >&2; exit 2 ;;
    esac
done
mkdir -p "$here/results" || exit 2
rm -f "$here"/results/*

one() {
    name=$(basename "$1" .toml)
    started=$(date +%s)
    "$gsan" run "$1" --device "$device" --schedules "$schedules" --format json \
        --out "$here/results/$name.json" 2> "$here/results/$name.log"
    code=$?
    printf '%s: exit code %d, %d s\n' "$name" $code $(($(date +%s) - started))
    [ $code = 0 ] || head -c 2000 "$here/results/$name.log"
    echo $code > "$here/results/$name.code"
}

for file in "$here"/programs_*.toml; do
    while [ "$(jobs -r | wc -l)" -ge "$jobs" ]; do wait -n; done
    one "$file" &
done
wait
! grep -qv '^0$' "$here"/results/*.code

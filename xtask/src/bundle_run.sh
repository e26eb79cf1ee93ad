#!/bin/bash
# Runs every scenario on the GPU and on the simulator and prints one table; exit code 1 if any differs from what it
# expects. Made by `cargo xtask gpu-bundle`.
#
#   ./run.sh [--gpu-only | --sim-only] [--no-bench] [NAME…]      NAME: a part of the scenarios' names
#
# JOBS=N: so many scenarios at once (1); most of a run is the driver's compiler.
# RUNS=N: so many repetitions (schedules) of each instead of what its file says. TIME_LIMIT=S: give up after S seconds.
# The litmus and parity scenarios have a script of their own: tests/litmus.sh --gsan ./gsan
# (with --parity --results FILE it writes what `cargo xtask parity FILE` puts into docs/parity.md)
#
# Reports (JSON) and messages of each run are left in results/.
set -uo pipefail
cd "$(dirname "$0")"
devices="cuda sim" bench=yes names=()
for word in "$@"; do
    case $word in
        --gpu-only) devices=cuda ;;
        --sim-only) devices=sim bench=no ;;
        --no-bench) bench=no ;;
        *) names+=("$word") ;;
    esac
done
mkdir -p results

# A kernel that hangs is given up by gsan itself, after what its file says or TIME_LIMIT; KILL is for the case that it does not.
KILL=${KILL:-120}

chosen() {
    [ ${#names[@]} = 0 ] && return 0
    for name in "${names[@]}"; do [[ $1 == *$name* ]] && return 0; done
    return 1
}

# What the scenario file expects, in a word or two.
expected() {
    local outcome races
    outcome=$(sed -n 's/^outcome = "\(.*\)"/\1/p' "$1")
    races=$(grep -c '^\[\[expect.race\]\]' "$1")
    if [ "$races" = 0 ]; then races="silent"; else races="race"; fi
    echo "$races${outcome:+, $outcome}"
}

# What a report has: the kinds of its races, and the outcome where it is not "completed".
found() {
    local kinds outcome
    [ -s "$1" ] || { echo "no report"; return; }
    kinds=$(grep -o '"kind": *"[RW]A[RW]"' "$1" | grep -o '[RW]A[RW]' | sort | uniq | paste -sd ' ')
    outcome=$(grep -o '"outcome": *"[a-z]*"' "$1" | head -1 | sed 's/.*"\([a-z]*\)"$/\1/')
    [ "$outcome" = completed ] && outcome=""
    echo "${kinds:-silent}${outcome:+, $outcome}"
}

# run SCENARIO DEVICE: sets $result (found), $verdict (ok or FAIL) and $seconds.
run() {
    local name start code
    name=results/$(basename "$1" .toml).$2
    rm -f "$name.json"
    start=$EPOCHREALTIME
    timeout -k 5 "$KILL" ./gsan run "$1" --device "$2" ${TIME_LIMIT:+--timeout "$TIME_LIMIT"} ${RUNS:+--schedules "$RUNS"} --format json --out "$name.json" \
        > "$name.out" 2> "$name.err"
    code=$?
    seconds=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
    result=$(found "$name.json")
    verdict="FAIL($code)"
    [ $code = 0 ] && verdict=ok
    # On a GPU a deadlock and an endless loop are the same: the watchdog prints what was found and ends the process.
    if [ "$2" = cuda ] && [ $code = 3 ]; then
        case "$(expected "$1") / $result" in
            "race, deadlock / "*W*", budget" | "race, budget / "*W*", budget") verdict=ok ;;
        esac
    fi
}

echo "date:   $(date -u '+%Y-%m-%d %H:%M UTC')"
echo "gsan:   $(./gsan --version)"
echo "GPU:    $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1 | sed 's/, /, driver /' || true)"
echo
printf '%-30s %-16s' scenario expected
for device in $devices; do printf ' | %-22s %-8s %6s' "$device" "" "s"; done
echo
# One row of the table. A run that differs from what its file expects leaves results/NAME.failed.
row() {
    printf '%-30s %-16s' "$(basename "$1" .toml)" "$(expected "$1")"
    for device in $devices; do
        run "$1" "$device"
        printf ' | %-22s %-8s %6s' "$result" "$verdict" "$seconds"
        [ "$verdict" = ok ] || : > "results/$(basename "$1" .toml).$device.failed"
    done
    echo
}

rm -f results/*.failed
total=0
for scenario in tests/scenarios/*.toml; do
    chosen "$(basename "$scenario")" || continue
    for device in $devices; do total=$((total + 1)); done
    while [ "$(jobs -r | wc -l)" -ge "${JOBS:-1}" ]; do wait -n; done
    row "$scenario" > "results/$(basename "$scenario" .toml).row" &&
        cat "results/$(basename "$scenario" .toml).row" &
done
wait
failed=$(find results -name '*.failed' | wc -l)
echo
echo "$((total - failed)) of $total as expected"

if [ "$bench" = yes ] && [ ${#names[@]} = 0 ] && [ -x ./gsan-bench ]; then
    echo
    echo "what detection costs:"
    timeout -k 5 600 ./gsan-bench --device cuda --out results/bench.md || failed=$((failed + 1))
fi
[ "$failed" = 0 ]

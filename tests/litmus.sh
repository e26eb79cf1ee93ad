#!/bin/bash
# Runs the litmus scenarios many times each, on a GPU by default, and prints a table. A file's kernel runs an instance per
# group of blocks and round: the rounds are raised to what the buffers have room for, and the whole is repeated until there
# are INSTANCES instances.
#
#   tests/litmus.sh [--device cuda|sim] [--instances N] [--gsan PROGRAM] [--reference] [NAME…]     NAME: a part of the names
#   tests/litmus.sh --parity [--device …] [--gsan PROGRAM] [NAME…]     the parity scenarios, as they are, 16 times each
#
# --jobs N runs so many files at a time. --slots N: so many logical threads per multiprocessor where a file does not say how many
# (clock rows are that much shorter, and runs faster; the litmus grids need few).
# Exit code 0: every file behaved as its [expect] says. --reference runs them with the reference cell, where they say no cell.
# --results FILE writes a list that `cargo xtask parity FILE` puts into docs/parity.md.
set -u
here=$(cd "$(dirname "$0")" && pwd)
device=cuda instances=10000 gsan=gsan cell=() names=() folder=litmus results=/dev/null jobs=1 slots=""
while [ $# -gt 0 ]; do
    case $1 in
        --device) device=$2; shift 2 ;;
        --instances) instances=$2; shift 2 ;;
        --gsan) gsan=$2; shift 2 ;;
        --parity) folder=parity; shift ;;
        --results) results=$2; shift 2 ;;
        --jobs) jobs=$2; shift 2 ;;
        --slots) slots=$2; shift 2 ;;
        --reference) cell=(--cell reference); shift ;;
        -*) echo "unknown option $1" >&2; exit 2 ;;
        *) names+=("$1"); shift ;;
    esac
done
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
where="the simulator"
if [ "$device" != sim ]; then
    where=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2> /dev/null | head -1 | sed 's/, /, driver /')
fi
{
    echo "# $("$gsan" --version), $(date -u '+%Y-%m-%d %H:%M UTC')"
    echo "# device: ${where:-a GPU}"
    echo "# folder, scenario, whether its [expect] held, runs"
} > "$results" || exit 2

# Runs one file and prints its row.
one() {
    local file=$1 name blocks roles room own each times races started result out
    name=$(basename "$file" .toml)
    # Blocks, blocks per instance, and rounds that there is room for.
    read -r blocks roles room < <(sed -n \
        -e 's/^grid = \[\([0-9]*\)\]/b \1/p' \
        -e 's/^ *div.u32 %group, %block, \([0-9]*\);/t \1/p' \
        -e 's/^ *mad.lo.u32 %variant, %group, \([0-9]*\), .*/r \1/p' "$file" |
        awk '{ v[$1] = $2 } END { print v["b"], v["t"], v["r"] }')
    # Those written by hand have no rounds.
    own=$(sed -n 's/^args = .*{ u32 = \([0-9]*\) }\]/\1/p' "$file" | head -1)
    own=${own:-1} roles=${roles:-1} room=${room:-1}
    # A simulated launch has a step budget: there the rounds stay as they are.
    [ "$device" = sim ] && room=$own
    each=$((blocks / roles * room))
    times=$(((instances + each - 1) / each))
    [ $folder = parity ] && room=$own each=$((blocks / roles * own)) times=16
    local shape=()
    if [ -n "$slots" ] && ! grep -q '^slots_per_sm' "$file"; then
        if grep -q '^\[device\]' "$file"; then
            shape=(-e "s/^\[device\]/&\nslots_per_sm = $slots/")
        else
            shape=(-e "0,/^\[\[module\]\]/s//[device]\nslots_per_sm = $slots\n\n&/")
        fi
    fi
    sed ${shape[@]+"${shape[@]}"} -e "s/^args = \(.*\){ u32 = [0-9]* }\]/args = \1{ u32 = $room }]/" "$file" > "$work/$name.toml"
    races=silence
    grep -q '^\[\[expect.race\]\]' "$file" && races=races
    started=$(date +%s)
    if "$gsan" run "$work/$name.toml" --device "$device" --schedules "$times" ${cell[@]+"${cell[@]}"} > "$work/$name.out" 2>&1; then
        result=ok
    else
        result=WRONG
        # An instruction set of later GPUs: said so in the table, and no result.
        grep -q 'SM version specified by .target is higher' "$work/$name.out" && result=not-here
    fi
    out=$(printf '%-40s %10d %-8s %-8s %6d\n' "$name" $((each * times)) $races $result $(($(date +%s) - started)))
    if [ "$result" = not-here ]; then
        echo "$out: needs a later GPU than this one"
        return
    fi
    [ "$result" = ok ] || out+=$'\n'$(grep -h -e 'not expected' -e 'expected ' -e '^error' "$work/$name.out" | cut -c1-220 | head -5)
    echo "$out"
    echo "$result" > "$work/$name.result"
    echo "$folder $name $result $times" >> "$results"
}

printf '%-40s %10s %-8s %-8s %6s\n' "$folder" instances expects result s
for file in "$here/scenarios/$folder"/*.toml; do
    name=$(basename "$file" .toml)
    if [ ${#names[@]} -gt 0 ]; then
        for part in "${names[@]}"; do [[ $name == *"$part"* ]] && break; done
        [[ $name == *"$part"* ]] || continue
    fi
    if [ ${#cell[@]} -gt 0 ] && grep -q '^cell' "$file"; then continue; fi
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
    one "$file" &
done
wait
total=$(cat "$work"/*.result | wc -l) bad=$(grep -l WRONG "$work"/*.result | wc -l)
echo "$total $folder tests, $bad not as expected"
[ "$bad" = 0 ]

#!/bin/bash
# On a machine with a GPU: the kernels of kernels.toml plain and instrumented, and three planted races.
# `run.sh nvcc` runs those whose name has nvcc in it. BIN is a folder with `gsan` and `gsan-real`; default: this tree's release build.
set -uo pipefail
cd "$(dirname "$0")"
bin=${BIN:-../../target/release}
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
date -u +%F
failed=0
# One process each: a kernel that ends badly takes its process's context with it.
header=
while read -r name; do
    "$bin/gsan-real" kernels.toml "$name" | tail -n +${header:-1} || failed=1
    header=3
done < <(sed -n 's/^name = "\(.*\)"/\1/p' kernels.toml | grep -e "${1:-.}")
for scenario in planted_vector_add planted_ticket ../scenarios/warp_specialised_racy ../scenarios/warp_specialised_fixed; do
    echo
    echo "\$ gsan run $scenario.toml"
    NO_COLOR=1 "$bin/gsan" run "$scenario.toml" --timeout 60 || failed=1
done
exit $failed

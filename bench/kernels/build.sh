#!/bin/bash
# Makes ptx/*.ptx of *.cu. Needs no GPU; tests/kernels/cuda/build.sh says where the compiler comes from.
#   bench/kernels/build.sh /opt/cu130/nvidia/cu13
set -euo pipefail
cuda=$(realpath "${1:?usage: build.sh CUDA_DIRECTORY (with bin/nvcc)}")
cd "$(dirname "$0")/../.."            # the sources are named from the repository's root
mkdir -p bench/kernels/ptx
for source in bench/kernels/*.cu; do
    out=bench/kernels/ptx/$(basename "$source" .cu).ptx
    "$cuda/bin/nvcc" -ptx -std=c++17 -lineinfo -arch=compute_80 "$source" -o "$out"
    # nvcc makes all file names absolute; none of this machine's paths goes into the repository.
    sed -i -E "s#^([[:space:]]*\.file[[:space:]]+[0-9]+ )\"$PWD/#\1\"#" "$out"
    if grep -n "$PWD\|$cuda" "$out"; then
        echo "$out: a path of this machine" >&2
        exit 1
    fi
done
"$cuda/bin/nvcc" --version | tail -2 > bench/kernels/ptx/TOOLCHAIN
echo "nvcc -ptx -std=c++17 -lineinfo -arch=compute_80 (see ../build.sh)" >> bench/kernels/ptx/TOOLCHAIN

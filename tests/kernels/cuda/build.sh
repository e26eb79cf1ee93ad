#!/bin/bash
# Makes ptx/*.ptx of *.cu, and ../separate/ptx/*.ptx, which are parts of one program. Needs no GPU. The compiler comes from PyPI, all five packages pinned, without dependencies
# (nvidia-cuda-nvcc depends on the others without versions):
#   pip install --no-deps --target cu130 nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 \
#       nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85
#   tests/kernels/cuda/build.sh cu130/nvidia/cu13
set -euo pipefail
cuda=$(realpath "${1:?usage: build.sh CUDA_DIRECTORY (with bin/nvcc)}")
cd "$(dirname "$0")/../../.."            # the sources are named from the repository's root
mkdir -p tests/kernels/{cuda,separate}/ptx
for source in tests/kernels/{cuda,separate}/*.cu; do
    out=$(dirname "$source")/ptx/$(basename "$source" .cu).ptx
    # What calls functions of other files is compiled as a part of a program.
    rdc=false
    case $source in */separate/*) rdc=true ;; esac
    # Clusters are sm_90's, `setmaxnreg` is sm_90a's.
    arch=compute_75
    case $source in
        */clusters.cu) arch=compute_90 ;;
        */warp_specialised.cu) arch=compute_90a ;;
    esac
    "$cuda/bin/nvcc" -ptx -std=c++17 -lineinfo -arch=$arch -rdc=$rdc "$source" -o "$out"
    # nvcc makes all file names absolute; none of this machine's paths goes into the repository.
    sed -i -E "s#^([[:space:]]*\.file[[:space:]]+[0-9]+ )\"$PWD/#\1\"#; s#^([[:space:]]*\.file[[:space:]]+[0-9]+ )\"$cuda/(.*/)?include/#\1\"cuda/include/#" "$out"
    if grep -n "$PWD\|$cuda" "$out"; then
        echo "$out: a path of this machine" >&2
        exit 1
    fi
done
"$cuda/bin/nvcc" --version | tail -2 > tests/kernels/cuda/ptx/TOOLCHAIN
echo "nvcc -ptx -std=c++17 -lineinfo -arch=compute_75, clusters.cu compute_90, warp_specialised.cu compute_90a (see ../build.sh)" >> tests/kernels/cuda/ptx/TOOLCHAIN

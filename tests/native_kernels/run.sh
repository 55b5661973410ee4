#!/usr/bin/env bash
# Builds the kernels that need no tensor (those of kernel_table.h and what cuts
# work up for them) against torch's libraries, without the extension, and runs
# their tests at every instruction set of this host.
# Arguments: names of tests, for example `gemm`; all when there are none; or
# --build-only for the kernels alone.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-.venv/bin/python}
torch=$("$python" -c 'import os, torch; print(os.path.dirname(torch.__file__))')
out=build/native_kernels
kernels=src/torch_neuronx/csrc/host_kernels
compiler="$(command -v ccache || true) ${CXX:-g++}"
flags=(-std=c++20 -O2 -g0 -ffp-contract=off -fopenmp -Wall -Wextra
  -Wno-unused-parameter -Wno-missing-field-initializers -Wno-unknown-pragmas
  -Isrc/torch_neuronx/csrc -Itests/native_kernels -I"$torch/include"
  -I"$torch/include/torch/csrc/api/include")
libraries=(-L"$torch/lib" -ltorch_cpu -lc10 -Wl,-rpath,"$torch/lib"
  "$torch"/lib/libgomp.so.1)

mkdir -p "$out/kernels"
objects=()
for source in "$kernels"/{gemm,attention}*.cpp "$kernels"/isa/*.cpp \
  "$kernels"/{isa,kernel_table,convolution,depthwise,unfold,optimizer}.cpp
do
  object=$out/kernels/$(basename "$source" .cpp).o
  $compiler "${flags[@]}" -c "$source" -o "$object"
  objects+=("$object")
done

if [ "${1:-}" = --build-only ]; then
  exit
fi
names=("$@")
if [ ${#names[@]} = 0 ]; then
  names=()
  for source in tests/native_kernels/*_test.cpp; do
    names+=("$(basename "$source" _test.cpp)")
  done
fi
levels=(baseline)
grep -q avx2 /proc/cpuinfo && levels+=(avx2)
grep -q avx512bw /proc/cpuinfo && levels+=(avx512)
grep -q avx512_bf16 /proc/cpuinfo && levels+=(avx512_bf16)
for name in "${names[@]}"; do
  $compiler "${flags[@]}" -c "tests/native_kernels/${name}_test.cpp" \
    -o "$out/${name}_test.o"
  "${CXX:-g++}" "$out/${name}_test.o" "${objects[@]}" "${libraries[@]}" \
    -o "$out/${name}_test"
  for level in "${levels[@]}"; do
    echo "== $name, $level"
    NEURON_HOST_ISA=$level "$out/${name}_test"
  done
done

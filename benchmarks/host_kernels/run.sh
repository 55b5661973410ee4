#!/usr/bin/env bash
# Builds and runs one benchmark of the host kernels, on all threads:
#   benchmarks/host_kernels/run.sh gemm|attention|convolution|optimizer [arguments]
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-.venv/bin/python}
torch=$("$python" -c 'import os, torch; print(os.path.dirname(torch.__file__))')
out=build/native_kernels
name=$1
shift
# The kernels, as their tests use them.
bash tests/native_kernels/run.sh --build-only
"${CXX:-g++}" -std=c++20 -O2 -ffp-contract=off -fopenmp \
  -Isrc/torch_neuronx/csrc -Ibenchmarks/host_kernels -I"$torch/include" \
  -I"$torch/include/torch/csrc/api/include" \
  "benchmarks/host_kernels/$name.cpp" "$out"/kernels/*.o \
  -L"$torch/lib" -ltorch -ltorch_cpu -lc10 -Wl,-rpath,"$torch/lib" \
  "$torch"/lib/libgomp.so.1 -o "$out/${name}_benchmark"
"$out/${name}_benchmark" "$@"

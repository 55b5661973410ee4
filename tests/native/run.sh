#!/usr/bin/env bash
# Builds the C++ runtime with its tests, without torch, and runs them plain,
# under ASan and UBSan, and under TSan.
# Arguments: any of plain, asan, tsan (all three without); then, after --,
# parts of the names of the tests to run.
set -euo pipefail
cd "$(dirname "$0")/../.."
variants=()
while [ $# -gt 0 ] && [ "$1" != "--" ]; do
  case $1 in
    plain | asan | tsan) variants+=("$1") ;;
    *)
      echo "unknown variant '$1'; use plain, asan or tsan" >&2
      exit 2
      ;;
  esac
  shift
done
[ $# -gt 0 ] && shift
[ ${#variants[@]} -gt 0 ] || variants=(plain asan tsan)

compiler="$(command -v ccache || true) ${CXX:-g++}"
warnings="-Wall -Wextra -Werror"
common="-std=c++20 $warnings -pthread -Isrc/torch_neuronx/csrc -Itests/native"
declare -A flags=(
  [plain]="-O2 -g0"
  [asan]="-O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"
  [tsan]="-O1 -g1 -fsanitize=thread"
)
sources=(src/torch_neuronx/csrc/runtime/*.cpp tests/native/*.cpp)

for variant in "${variants[@]}"; do
  out=build/native_tests/$variant
  mkdir -p "$out"
  objects=()
  for source in "${sources[@]}"; do
    objects+=("$out/$(basename "$source" .cpp).o")
  done
  # Two at a time; ccache makes an unchanged file a copy.
  printf '%s\n' "${sources[@]}" | xargs -P 2 -I{} bash -c \
    "$compiler $common ${flags[$variant]} -c {} -o $out/\$(basename {} .cpp).o"
  # shellcheck disable=SC2086
  ${CXX:-g++} ${flags[$variant]} -pthread "${objects[@]}" -o "$out/runtime_tests"
  echo "== runtime, $variant"
  UBSAN_OPTIONS=print_stacktrace=1 "$out/runtime_tests" "$@"
done

#include "host_kernels/isa.h"

#include <c10/util/Exception.h>

#include <cstdlib>
#include <string_view>

namespace neuron::host_kernels {
namespace {

constexpr Isa kLevels[] = {
    Isa::baseline,
    Isa::avx2,
    Isa::avx512,
    Isa::avx512_bf16,
};

Isa best_isa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("f16c")) {
    return Isa::baseline;
  }
  if (!__builtin_cpu_supports("avx512f") ||
      !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl") ||
      !__builtin_cpu_supports("avx512dq")) {
    return Isa::avx2;
  }
  return __builtin_cpu_supports("avx512bf16") ? Isa::avx512_bf16 : Isa::avx512;
#else
  return Isa::baseline;
#endif
}

Isa choose_isa() {
  const auto best = best_isa();
  const char* wanted = std::getenv("NEURON_HOST_ISA");
  if (wanted == nullptr || *wanted == '\0') {
    return best;
  }
  for (const auto level : kLevels) {
    if (std::string_view(wanted) == name(level)) {
      TORCH_CHECK_VALUE(
          level <= best,
          "NEURON_HOST_ISA=",
          wanted,
          " needs instructions that this host does not have. Its best level "
          "is ",
          name(best),
          ".");
      return level;
    }
  }
  TORCH_CHECK_VALUE(
      false,
      "NEURON_HOST_ISA=",
      wanted,
      " is not a level. Use baseline, avx2, avx512 or avx512_bf16, or leave it "
      "unset for the best one of this host.");
}

}  // namespace

Isa host_isa() {
  static const Isa chosen = choose_isa();
  return chosen;
}

const char* name(Isa isa) {
  switch (isa) {
    case Isa::baseline:
      return "baseline";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
    case Isa::avx512_bf16:
      return "avx512_bf16";
  }
  return "";
}

}  // namespace neuron::host_kernels

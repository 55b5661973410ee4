// Vectors of the including instruction set, and casts of contiguous memory.
#pragma once

namespace neuron::host_kernels::NEURON_ISA_NAMESPACE {
namespace {

template <class T>
using Vec = at::vec::Vectorized<T>;
using F32 = Vec<float>;

template <class T>
constexpr bool kReduced = c10::is_reduced_floating_point_v<T>;
template <class T>
using Compute = std::conditional_t<kReduced<T>, float, T>;

template <class From, class To>
void cast(void* out, const void* in, int64_t count) {
  auto* to = static_cast<To*>(out);
  const auto* from = static_cast<const From*>(in);
  if constexpr (std::is_same_v<From, float> && kReduced<To>) {
    constexpr int64_t lanes = Vec<To>::size();
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      at::vec::convert_from_float<To>(
          F32::loadu(from + i), F32::loadu(from + i + lanes / 2))
          .store(to + i);
    }
    for (; i < count; ++i) {
      to[i] = static_cast<To>(from[i]);
    }
  } else if constexpr (kReduced<From> && std::is_same_v<To, float>) {
    constexpr int64_t lanes = Vec<From>::size();
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      auto [low, high] =
          at::vec::convert_to_float<From>(Vec<From>::loadu(from + i));
      low.store(to + i);
      high.store(to + i + lanes / 2);
    }
    for (; i < count; ++i) {
      to[i] = static_cast<To>(from[i]);
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      to[i] = static_cast<To>(static_cast<Compute<From>>(from[i]));
    }
  }
}

}  // namespace
}  // namespace neuron::host_kernels::NEURON_ISA_NAMESPACE

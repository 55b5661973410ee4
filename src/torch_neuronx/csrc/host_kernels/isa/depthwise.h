// One output row of a convolution with one channel per group.
#pragma once

#include "host_kernels/depthwise_kernels.h"
#include "host_kernels/isa/values.h"

namespace neuron::host_kernels::NEURON_ISA_NAMESPACE {

inline void correlate(const TapRow& row, const float* weights, float* out) {
  constexpr int kVectors = 4;
  for (int64_t x = 0; x < row.count; x += kVectors * kLanes) {
    F32 acc[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      acc[v] = zero();
    }
    for (int64_t t = 0; t < row.taps; ++t) {
      const auto* in = row.in + row.offsets[t] + x;
      const auto weight = broadcast(weights[t]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        acc[v] = fma(load(in + v * kLanes), weight, acc[v]);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      store(out + x + v * kLanes, acc[v]);
    }
  }
}

inline void correlate_gradient(
    const TapRow& row, const float* gradient, float* sums) {
  for (int64_t t = 0; t < row.taps; ++t) {
    const auto* in = row.in + row.offsets[t];
    F32 acc[2] = {zero(), zero()};
    int64_t x = 0;
    for (; x + 2 * kLanes <= row.count; x += 2 * kLanes) {
      acc[0] = fma(load(in + x), load(gradient + x), acc[0]);
      acc[1] = fma(load(in + x + kLanes), load(gradient + x + kLanes), acc[1]);
    }
    for (; x < row.count; x += kLanes) {
      const auto left = row.count - x;
      acc[0] =
          fma(load_some(in + x, left), load_some(gradient + x, left), acc[0]);
    }
    auto* total = sums + t * kTapSums;
    store(total, load(total) + (acc[0] + acc[1]));
  }
}

inline void round(
    const float* from, c10::ScalarType dtype, void* to, int64_t count) {
  with_value_type(dtype, [&]<class T>(T*) {
    auto* out = static_cast<T*>(to);
    for_vectors(count, [&](int64_t i, int64_t n) {
      store_some(out + i, load_some(from + i, n), n);
    });
  });
}

}  // namespace neuron::host_kernels::NEURON_ISA_NAMESPACE

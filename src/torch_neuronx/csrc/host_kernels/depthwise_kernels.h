// The loops of depthwise convolution that exist once per instruction set.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace neuron::host_kernels {

// Readable fp32 after the last value that a row needs, for whole vectors.
constexpr int64_t kTapMargin = 64;
// fp32 per tap that a sum over rows is kept in.
constexpr int64_t kTapSums = 16;

// Output x reads in[offsets[tap] + x] for each tap.
struct TapRow {
  const float* in;
  const int64_t* offsets;
  int64_t taps;
  int64_t count;
};

struct DepthwiseKernels {
  // out[x] = sum over taps of weights[tap] * in; writes up to kTapMargin
  // values more.
  void (*correlate)(const TapRow& row, const float* weights, float* out);
  // sums[tap * kTapSums ...] += parts of the sum over x of gradient[x] * in.
  void (*correlate_gradient)(
      const TapRow& row, const float* gradient, float* sums);
  // fp32 to the dtype of the weights.
  void (*round)(
      const float* from, c10::ScalarType dtype, void* to, int64_t count);
};

}  // namespace neuron::host_kernels

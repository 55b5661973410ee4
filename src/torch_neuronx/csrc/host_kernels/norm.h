// Layer norm and RMS norm over the last dimension, forward and backward, each
// in one pass over memory.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace neuron::host_kernels {

// rows x width, contiguous. Values are float, bfloat16 or half; weight and
// bias are [width] of the same dtype or float.
struct Norm {
  int64_t rows;
  int64_t width;
  c10::ScalarType dtype;
  c10::ScalarType parameter_dtype;
  bool centered;  // layer norm; otherwise RMS norm
};

// mean (unused by RMS norm) and rstd are fp32, one per row; each may be null,
// as may weight and bias.
void norm_forward(
    const Norm& norm,
    float eps,
    const void* x,
    const void* weight,
    const void* bias,
    void* out,
    float* mean,
    float* rstd);

struct NormGradients {
  void* x;       // of dtype
  void* weight;  // of parameter_dtype, as bias
  void* bias;
};

// Each gradient may be null.
void norm_backward(
    const Norm& norm,
    const void* out_gradient,
    const void* x,
    const float* mean,
    const float* rstd,
    const void* weight,
    const NormGradients& gradients);

}  // namespace neuron::host_kernels

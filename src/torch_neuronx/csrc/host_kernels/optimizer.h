// Optimizer steps over lists of arrays, one pass over memory each.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace neuron::host_kernels {

// float, bfloat16 or half; the states are of the same dtype or float. The
// arithmetic is fp32, every array rounds once.
struct OptimizedArray {
  int64_t count;
  c10::ScalarType dtype;  // of parameter and gradient
  c10::ScalarType state_dtype;
  void* parameter;
  const void* gradient;
  void* first;    // Adam: mean of gradients; SGD: momentum, or null
  void* second;   // Adam: mean of squares
  void* maximum;  // Adam: largest mean of squares, or null
  float step;     // Adam: 1 at the first step
};

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  bool decoupled_decay = true;  // AdamW
  bool maximize = false;
  double gradient_scale = 1.0;  // gradients are divided by it
};

void adam_step(
    const OptimizedArray* arrays, int64_t count, const AdamOptions& options);

struct SgdOptions {
  double learning_rate = 1e-3;
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
  bool maximize = false;
  bool first_step = false;  // the momentum starts as the gradient
  double gradient_scale = 1.0;
};

void sgd_step(
    const OptimizedArray* arrays, int64_t count, const SgdOptions& options);

struct Array {
  void* data;
  c10::ScalarType dtype;
  int64_t count;
};

// sums[i] = sum of squares of array i. The order of additions does not depend
// on the number of threads.
void sums_of_squares(const Array* arrays, int64_t count, double* sums);

// Multiplies every array by factor.
void scale_arrays(const Array* arrays, int64_t count, float factor);

}  // namespace neuron::host_kernels

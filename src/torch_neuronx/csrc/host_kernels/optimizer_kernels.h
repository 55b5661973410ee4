// Loops of optimizer.h that exist once per instruction set. Each runs on one
// thread.
#pragma once

#include "host_kernels/optimizer.h"

namespace neuron::host_kernels {

// The constants of one step, worked out once per array.
struct AdamConstants {
  float gradient_factor;  // sign and scale
  float kept;             // of the parameter, after decoupled decay
  float decay;            // added to the gradient otherwise
  float first_gain;       // 1 - beta1, worked out in double
  float beta2;
  float second_gain;  // 1 - beta2
  float step_size;
  float second_factor;  // 1 / sqrt(bias correction)
  float eps;
};

struct OptimizerKernels {
  // Elements [begin, end) of one array.
  void (*adam)(
      const OptimizedArray& array,
      const AdamConstants& constants,
      int64_t begin,
      int64_t end);
  void (*sgd)(
      const OptimizedArray& array,
      const SgdOptions& options,
      int64_t begin,
      int64_t end);
  double (*sum_of_squares)(const Array& array, int64_t begin, int64_t end);
  void (*scale)(const Array& array, float factor, int64_t begin, int64_t end);
};

}  // namespace neuron::host_kernels

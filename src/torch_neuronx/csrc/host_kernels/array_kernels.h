// Loops of norm.h, softmax.h and optimizer.h that exist once per instruction
// set. Each runs on one thread.
#pragma once

#include "host_kernels/norm.h"
#include "host_kernels/optimizer.h"
#include "host_kernels/softmax.h"

namespace neuron::host_kernels {

struct NormRows {
  Norm norm;  // rows: of this call
  const void* x;
  const void* weight;
  const void* bias;
  float* mean;
  float* rstd;
};

// The constants of one step, worked out once per array.
struct AdamConstants {
  float gradient_factor;  // sign and scale
  float kept;             // of the parameter, after decoupled decay
  float decay;            // added to the gradient otherwise
  float beta1;
  float beta2;
  float step_size;
  float second_factor;  // 1 / sqrt(bias correction)
  float eps;
};

struct ArrayKernels {
  void (*norm_forward)(const NormRows& rows, float eps, void* out);
  // weight_sums and bias_sums are fp32 [width], added to; may be null, as may
  // x_gradient.
  void (*norm_backward)(
      const NormRows& rows,
      const void* out_gradient,
      void* x_gradient,
      float* weight_sums,
      float* bias_sums);
  void (*softmax_forward)(const Rows& rows, bool log, const void* x, void* out);
  void (*softmax_backward)(
      const Rows& rows,
      bool log,
      const void* out_gradient,
      const void* out,
      void* x_gradient);
  // Log-sum-exp and plain sum of one row.
  void (*log_sum_exp)(
      int64_t width,
      c10::ScalarType dtype,
      const void* x,
      float* log_sum_exp,
      float* sum);
  // out = factor * exp(x - log_sum_exp) + shift
  void (*scaled_softmax)(
      int64_t width,
      c10::ScalarType dtype,
      const void* x,
      float log_sum_exp,
      float factor,
      float shift,
      void* out);
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
  // fp32 to any of the dtypes.
  void (*convert)(
      const float* from, c10::ScalarType dtype, void* to, int64_t count);
};

}  // namespace neuron::host_kernels

// Softmax and cross-entropy over the last dimension.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace neuron::host_kernels {

// rows x width, contiguous; float, bfloat16 or half, computed in fp32.
struct Rows {
  int64_t rows;
  int64_t width;
  c10::ScalarType dtype;
};

void softmax_forward(const Rows& shape, bool log, const void* x, void* out);

// `out` is the result of softmax_forward.
void softmax_backward(
    const Rows& shape,
    bool log,
    const void* out_gradient,
    const void* out,
    void* x_gradient);

struct CrossEntropy {
  int64_t ignore_index = -100;
  float label_smoothing = 0.0f;
};

// Per row: losses[i] = log-sum-exp - logit of the target, smoothed; 0 where
// the target is ignored. log_sum_exp is kept for the backward pass. Returns
// the first row whose target is neither a class nor ignored, or -1; its loss
// is NaN.
int64_t cross_entropy_forward(
    const Rows& shape,
    const CrossEntropy& options,
    const void* logits,
    const int64_t* targets,
    float* losses,
    float* log_sum_exp);

// gradients[i] scales row i (the gradient of its loss).
void cross_entropy_backward(
    const Rows& shape,
    const CrossEntropy& options,
    const void* logits,
    const int64_t* targets,
    const float* log_sum_exp,
    const float* gradients,
    void* logits_gradient);

}  // namespace neuron::host_kernels

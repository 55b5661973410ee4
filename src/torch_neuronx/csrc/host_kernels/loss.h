// The loss over class log-probabilities, fp32, one target per row.
#pragma once

#include <cstdint>

namespace neuron::host_kernels {

struct NllLoss {
  const float* log_probabilities;  // rows x classes
  const int64_t* target;
  int64_t rows;
  int64_t classes;
  int64_t ignored;  // the target that does not count
};

// Sums -log_probabilities[row][target[row]] and counts the rows. Returns the
// first row whose target is no class, or -1.
int64_t nll_loss(const NllLoss& loss, float& sum, int64_t& counted);

// in_gradient = d(sum * scale)/d(log_probabilities); the rows' targets are
// valid.
void nll_loss_backward(const NllLoss& loss, float scale, float* in_gradient);

}  // namespace neuron::host_kernels

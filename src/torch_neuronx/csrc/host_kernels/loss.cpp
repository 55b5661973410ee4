#include "host_kernels/loss.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace neuron::host_kernels {
namespace {

// The order of ATen's additions: partial sums on eight levels, each of which
// takes 2^power values of the one below.
constexpr int kLevels = 8;

int64_t level_power(int64_t rows) {
  int64_t bits = 0;
  while ((int64_t{1} << bits) < rows) {
    ++bits;
  }
  return std::max<int64_t>(4, bits / kLevels);
}

}  // namespace

int64_t nll_loss(const NllLoss& loss, float& sum, int64_t& counted) {
  const auto power = level_power(loss.rows);
  const int64_t mask = (int64_t{1} << power) - 1;
  std::array<float, kLevels> sums{};
  counted = 0;
  for (int64_t row = 0; row < loss.rows; ++row) {
    const auto target = loss.target[row];
    if (target == loss.ignored) {
      continue;
    }
    if (target < 0 || target >= loss.classes) {
      return row;
    }
    ++counted;
    sums[0] -= loss.log_probabilities[row * loss.classes + target];
    for (int level = 0; level + 1 < kLevels; ++level) {
      if ((row & (mask << (level * power))) != 0) {
        break;
      }
      const auto at = static_cast<size_t>(level);
      sums[at + 1] += sums[at];
      sums[at] = 0;
    }
  }
  sum = 0;
  for (const float part : sums) {
    sum += part;
  }
  return -1;
}

void nll_loss_backward(const NllLoss& loss, float scale, float* in_gradient) {
  std::memset(
      in_gradient,
      0,
      static_cast<size_t>(loss.rows * loss.classes) * sizeof(float));
  for (int64_t row = 0; row < loss.rows; ++row) {
    const auto target = loss.target[row];
    if (target != loss.ignored && target >= 0 && target < loss.classes) {
      in_gradient[row * loss.classes + target] = -scale;
    }
  }
}

}  // namespace neuron::host_kernels

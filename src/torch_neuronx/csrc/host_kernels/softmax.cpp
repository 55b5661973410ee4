#include "host_kernels/softmax.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "host_kernels/gemm_paths.h"
#include "host_kernels/kernel_table.h"

namespace neuron::host_kernels {
namespace {

constexpr int64_t kElementsPerThread = 16384;

template <class Function>
void for_rows(const Rows& shape, Function function) {
  const auto grain = std::max<int64_t>(
      1, kElementsPerThread / std::max<int64_t>(1, shape.width));
  at::parallel_for(0, shape.rows, grain, function);
}

const void* row_of(const Rows& shape, const void* data, int64_t row) {
  return advance(data, shape.dtype, row * shape.width);
}

void* row_of(const Rows& shape, void* data, int64_t row) {
  return const_cast<void*>(advance(data, shape.dtype, row * shape.width));
}

float value_at(const void* row, c10::ScalarType dtype, int64_t i) {
  switch (dtype) {
    case c10::ScalarType::BFloat16:
      return static_cast<const c10::BFloat16*>(row)[i];
    case c10::ScalarType::Half:
      return static_cast<const c10::Half*>(row)[i];
    default:
      return static_cast<const float*>(row)[i];
  }
}

}  // namespace

void softmax_forward(const Rows& shape, bool log, const void* x, void* out) {
  for_rows(shape, [&](int64_t begin, int64_t end) {
    kernel_table().arrays.softmax_forward(
        {end - begin, shape.width, shape.dtype},
        log,
        row_of(shape, x, begin),
        row_of(shape, out, begin));
  });
}

void softmax_backward(
    const Rows& shape,
    bool log,
    const void* out_gradient,
    const void* out,
    void* x_gradient) {
  for_rows(shape, [&](int64_t begin, int64_t end) {
    kernel_table().arrays.softmax_backward(
        {end - begin, shape.width, shape.dtype},
        log,
        row_of(shape, out_gradient, begin),
        row_of(shape, out, begin),
        row_of(shape, x_gradient, begin));
  });
}

int64_t cross_entropy_forward(
    const Rows& shape,
    const CrossEntropy& options,
    const void* logits,
    const int64_t* targets,
    float* losses,
    float* log_sum_exp) {
  const auto smoothing = options.label_smoothing;
  std::atomic<int64_t> first_bad{shape.rows};
  for_rows(shape, [&](int64_t begin, int64_t end) {
    for (auto row = begin; row < end; ++row) {
      const auto* x = row_of(shape, logits, row);
      float sum = 0.0f;
      kernel_table().arrays.log_sum_exp(
          shape.width, shape.dtype, x, &log_sum_exp[row], &sum);
      const auto target = targets[row];
      if (target == options.ignore_index) {
        losses[row] = 0.0f;
      } else if (target < 0 || target >= shape.width) {
        losses[row] = std::numeric_limits<float>::quiet_NaN();
        auto known = first_bad.load();
        while (row < known && !first_bad.compare_exchange_weak(known, row)) {
        }
      } else {
        const auto all = static_cast<float>(shape.width);
        losses[row] = log_sum_exp[row] -
                      (1.0f - smoothing) * value_at(x, shape.dtype, target) -
                      smoothing * sum / all;
      }
    }
  });
  return first_bad == shape.rows ? -1 : first_bad.load();
}

void cross_entropy_backward(
    const Rows& shape,
    const CrossEntropy& options,
    const void* logits,
    const int64_t* targets,
    const float* log_sum_exp,
    const float* gradients,
    void* logits_gradient) {
  const auto smoothing = options.label_smoothing;
  const auto size = static_cast<int64_t>(c10::elementSize(shape.dtype));
  const auto& kernels = kernel_table().arrays;
  for_rows(shape, [&](int64_t begin, int64_t end) {
    for (auto row = begin; row < end; ++row) {
      auto* out = row_of(shape, logits_gradient, row);
      const auto target = targets[row];
      if (target == options.ignore_index) {
        std::fill_n(static_cast<char*>(out), shape.width * size, char{0});
        continue;
      }
      const auto* x = row_of(shape, logits, row);
      const float g = gradients[row];
      const float shift = -g * smoothing / static_cast<float>(shape.width);
      // Before `out` overwrites the logits, if they are the same memory.
      const float logit = value_at(x, shape.dtype, target);
      kernels.scaled_softmax(
          shape.width, shape.dtype, x, log_sum_exp[row], g, shift, out);
      const float p = std::exp(logit - log_sum_exp[row]);
      const float at_target = g * (p - (1.0f - smoothing)) + shift;
      kernels.convert(
          &at_target, shape.dtype, static_cast<char*>(out) + target * size, 1);
    }
  });
}

}  // namespace neuron::host_kernels

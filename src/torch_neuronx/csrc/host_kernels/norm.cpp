#include "host_kernels/norm.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "host_kernels/gemm_paths.h"
#include "host_kernels/kernel_table.h"
#include "host_kernels/scratch.h"

namespace neuron::host_kernels {
namespace {

constexpr int64_t kElementsPerThread = 32768;

struct SumTag;

NormRows rows_from(
    const Norm& norm,
    int64_t begin,
    int64_t end,
    const void* x,
    const void* weight,
    const void* bias,
    float* mean,
    float* rstd) {
  NormRows rows{norm, advance(x, norm.dtype, begin * norm.width), weight, bias};
  rows.norm.rows = end - begin;
  rows.mean = mean == nullptr ? nullptr : mean + begin;
  rows.rstd = rstd == nullptr ? nullptr : rstd + begin;
  return rows;
}

void* advance_out(const Norm& norm, void* data, int64_t row) {
  return const_cast<void*>(advance(data, norm.dtype, row * norm.width));
}

int64_t grain(const Norm& norm) {
  return std::max<int64_t>(
      1, kElementsPerThread / std::max<int64_t>(1, norm.width));
}

}  // namespace

void norm_forward(
    const Norm& norm,
    float eps,
    const void* x,
    const void* weight,
    const void* bias,
    void* out,
    float* mean,
    float* rstd) {
  const auto& kernels = kernel_table().arrays;
  at::parallel_for(0, norm.rows, grain(norm), [&](int64_t begin, int64_t end) {
    kernels.norm_forward(
        rows_from(norm, begin, end, x, weight, bias, mean, rstd),
        eps,
        advance_out(norm, out, begin));
  });
}

void norm_backward(
    const Norm& norm,
    const void* out_gradient,
    const void* x,
    const float* mean,
    const float* rstd,
    const void* weight,
    const NormGradients& gradients) {
  const auto& kernels = kernel_table().arrays;
  const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  const auto parts = std::clamp<int64_t>(norm.rows / grain(norm), 1, threads);
  const auto part_rows = (norm.rows + parts - 1) / parts;
  const bool sums_wanted =
      gradients.weight != nullptr || gradients.bias != nullptr;
  // Per part: sums of the weight's and of the bias's gradient.
  float* sums = sums_wanted ? scratch<SumTag>(parts * 2 * norm.width) : nullptr;
  if (sums_wanted) {
    std::fill_n(sums, parts * 2 * norm.width, 0.0f);
  }
  at::parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
    for (auto part = first; part < last; ++part) {
      const auto begin = std::min(part * part_rows, norm.rows);
      const auto end = std::min(begin + part_rows, norm.rows);
      auto* weight_sums =
          gradients.weight == nullptr ? nullptr : sums + part * 2 * norm.width;
      auto* bias_sums = gradients.bias == nullptr
                            ? nullptr
                            : sums + (part * 2 + 1) * norm.width;
      kernels.norm_backward(
          rows_from(
              norm,
              begin,
              end,
              x,
              weight,
              nullptr,
              const_cast<float*>(mean),
              const_cast<float*>(rstd)),
          advance(out_gradient, norm.dtype, begin * norm.width),
          advance_out(norm, gradients.x, begin),
          weight_sums,
          bias_sums);
    }
  });
  for (int64_t which = 0; which < 2 && sums_wanted; ++which) {
    auto* total = sums + which * norm.width;
    for (int64_t part = 1; part < parts; ++part) {
      const auto* more = total + part * 2 * norm.width;
      for (int64_t i = 0; i < norm.width; ++i) {
        total[i] += more[i];
      }
    }
    auto* to = which == 0 ? gradients.weight : gradients.bias;
    if (to != nullptr) {
      kernels.convert(total, norm.parameter_dtype, to, norm.width);
    }
  }
}

}  // namespace neuron::host_kernels

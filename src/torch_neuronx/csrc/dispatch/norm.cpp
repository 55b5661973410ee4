// Direct kernels of layer norm.
#include "dispatch/direct.h"

#include <ATen/ops/native_layer_norm_backward_ops.h>
#include <ATen/ops/native_layer_norm_ops.h>
#include <torch/library.h>

#include <vector>

#include "host_kernels/parallel.h"
#include "host_kernels/pointwise.h"
#include "host_kernels/rows.h"

namespace neuron {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using host_kernels::RowKernels;

bool is_given(const OptionalTensor& tensor) {
  return tensor.has_value() && tensor->defined();
}

// Absent, or a weight of the normalized shape beside `self`.
bool fits_parameter(
    const OptionalTensor& parameter, const Tensor& self, int64_t columns) {
  return !is_given(parameter) ||
         (is_direct(*parameter) && parameter->numel() == columns &&
          parameter->scalar_type() == self.scalar_type() &&
          same_device(*parameter, self));
}

const void* data_of(const OptionalTensor& tensor) {
  return is_given(tensor) ? input(*tensor) : nullptr;
}

// Number of elements that are normalized together, 0 if not a direct case.
int64_t columns_of(const Tensor& self, c10::SymIntArrayRef shape) {
  const auto sizes = c10::asIntArrayRefSlowOpt(shape);
  if (!sizes.has_value() || !is_direct(self) || self.numel() == 0 ||
      sizes->empty() || sizes->size() > self.sizes().size() ||
      self.sizes().slice(self.sizes().size() - sizes->size()) != *sizes) {
    return 0;
  }
  return c10::multiply_integers(*sizes);
}

bool has_shape(const OptionalTensor& parameter, c10::SymIntArrayRef shape) {
  return !is_given(parameter) || parameter->sym_sizes() == shape;
}

using LayerNormResult = std::tuple<Tensor, Tensor, Tensor>;

LayerNormResult native_layer_norm(
    const Tensor& self,
    c10::SymIntArrayRef shape,
    const OptionalTensor& weight,
    const OptionalTensor& bias,
    double epsilon) {
  using Op = at::_ops::native_layer_norm;
  const auto columns = columns_of(self, shape);
  const auto* kernels =
      columns > 0 ? host_kernels::row_kernels(self.scalar_type()) : nullptr;
  if (kernels == nullptr || !fits_parameter(weight, self, columns) ||
      !fits_parameter(bias, self, columns) || !has_shape(weight, shape) ||
      !has_shape(bias, shape)) {
    return OnHost<Op>::run(self, shape, weight, bias, epsilon);
  }
  const auto rows = self.numel() / columns;
  c10::SmallVector<int64_t, 6> sizes(self.sizes().begin(), self.sizes().end());
  std::fill(sizes.end() - static_cast<int64_t>(shape.size()), sizes.end(), 1);
  const int device = self.device().index();
  auto out = empty_as(self);
  auto mean = empty(sizes, self.scalar_type(), device);
  auto rstd = empty(sizes, self.scalar_type(), device);
  const host_kernels::LayerNorm norm{
      input(self),
      data_of(weight),
      data_of(bias),
      output(out),
      output(mean),
      output(rstd),
      epsilon};
  auto* kernel = kernels->layer_norm;
  launch_on(record_of<Op>(), self, [=] {
    host_kernels::in_rows(rows, columns, [&](int64_t begin, int64_t end) {
      kernel(norm, begin, end, columns);
    });
  });
  return {std::move(out), std::move(mean), std::move(rstd)};
}

// Each part of the rows sums its own parameter gradients; then they add up.
void run_backward(
    const RowKernels& kernels,
    host_kernels::LayerNormBackward norm,
    c10::ScalarType dtype,
    void* weight_gradient,
    void* bias_gradient,
    int64_t rows,
    int64_t columns) {
  const auto most =
      (rows * columns + host_kernels::kGrain - 1) / host_kernels::kGrain;
  const auto parts = std::min<int64_t>(
      {most, rows, at::in_parallel_region() ? 1 : at::get_num_threads()});
  std::vector<float> sums(static_cast<size_t>(parts * 2 * columns), 0.0f);
  const auto run = [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      auto mine = norm;
      auto* sum = sums.data() + part * 2 * columns;
      mine.weight_gradient = weight_gradient != nullptr ? sum : nullptr;
      mine.bias_gradient = bias_gradient != nullptr ? sum + columns : nullptr;
      kernels.layer_norm_backward(
          mine, rows * part / parts, rows * (part + 1) / parts, columns);
    }
  };
  if (parts == 1) {
    run(0, 1);
  } else {
    at::parallel_for(0, parts, 1, run);
  }
  for (int64_t part = 1; part < parts; ++part) {
    for (int64_t i = 0; i < 2 * columns; ++i) {
      sums[static_cast<size_t>(i)] +=
          sums[static_cast<size_t>(part * 2 * columns + i)];
    }
  }
  auto* round = host_kernels::cast_loop(at::kFloat, dtype);
  if (weight_gradient != nullptr) {
    round(weight_gradient, sums.data(), columns);
  }
  if (bias_gradient != nullptr) {
    round(bias_gradient, sums.data() + columns, columns);
  }
}

LayerNormResult native_layer_norm_backward(
    const Tensor& gradient,
    const Tensor& self,
    c10::SymIntArrayRef shape,
    const Tensor& mean,
    const Tensor& rstd,
    const OptionalTensor& weight,
    const OptionalTensor& bias,
    std::array<bool, 3> wanted) {
  using Op = at::_ops::native_layer_norm_backward;
  const auto columns = columns_of(self, shape);
  const auto* kernels =
      columns > 0 ? host_kernels::row_kernels(self.scalar_type()) : nullptr;
  const auto beside = [&](const Tensor& other, int64_t count) {
    return is_direct(other) && other.scalar_type() == self.scalar_type() &&
           same_device(other, self) && other.numel() == count;
  };
  if (kernels == nullptr || !beside(gradient, self.numel()) ||
      !beside(mean, self.numel() / columns) ||
      !beside(rstd, self.numel() / columns) ||
      !fits_parameter(weight, self, columns) ||
      (wanted[1] && !is_given(weight)) || (wanted[2] && !is_given(bias))) {
    return OnHost<Op>::run(
        gradient, self, shape, mean, rstd, weight, bias, wanted);
  }
  const auto rows = self.numel() / columns;
  Tensor results[3];
  if (wanted[0]) {
    results[0] = empty_as(self);
  }
  if (wanted[1]) {
    results[1] = empty_as(*weight);
  }
  if (wanted[2]) {
    results[2] = empty_as(*bias);
  }
  host_kernels::LayerNormBackward norm{};
  norm.gradient = input(gradient);
  norm.in = input(self);
  norm.mean = input(mean);
  norm.rstd = input(rstd);
  norm.weight = data_of(weight);
  norm.in_gradient = wanted[0] ? output(results[0]) : nullptr;
  auto* weight_gradient = wanted[1] ? output(results[1]) : nullptr;
  auto* bias_gradient = wanted[2] ? output(results[2]) : nullptr;
  const auto dtype = self.scalar_type();
  launch_on(record_of<Op>(), self, [=] {
    run_backward(
        *kernels, norm, dtype, weight_gradient, bias_gradient, rows, columns);
  });
  return {std::move(results[0]), std::move(results[1]), std::move(results[2])};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("native_layer_norm", TORCH_FN(native_layer_norm));
  m.impl("native_layer_norm_backward", TORCH_FN(native_layer_norm_backward));
}

}  // namespace
}  // namespace neuron

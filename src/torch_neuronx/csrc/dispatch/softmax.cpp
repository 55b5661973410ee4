// Direct kernels of softmax and log-softmax over the last dim.
#include "dispatch/direct.h"

#include <ATen/ops/_log_softmax_backward_data_ops.h>
#include <ATen/ops/_log_softmax_ops.h>
#include <ATen/ops/_softmax_backward_data_ops.h>
#include <ATen/ops/_softmax_ops.h>
#include <torch/library.h>

#include "host_kernels/parallel.h"
#include "host_kernels/rows.h"

namespace neuron {
namespace {

using at::Tensor;
using host_kernels::RowKernels;

const RowKernels* kernels_for(const Tensor& self, int64_t dim) {
  return is_direct(self) && self.numel() > 0 &&
                 (dim == -1 || dim == self.dim() - 1) && self.dim() > 0
             ? host_kernels::row_kernels(self.scalar_type())
             : nullptr;
}

template <class Op, RowKernels::Map RowKernels::* kernel>
Tensor forward(const Tensor& self, int64_t dim, bool half_to_float) {
  const auto* kernels = half_to_float ? nullptr : kernels_for(self, dim);
  if (kernels == nullptr) {
    return OnHost<Op>::run(self, dim, half_to_float);
  }
  auto result = empty_as(self);
  const auto columns = self.sizes().back();
  const auto rows = self.numel() / columns;
  const auto* from = input(self);
  auto* to = output(result);
  auto* map = kernels->*kernel;
  launch_on(record_of<Op>(), self, [=] {
    host_kernels::in_rows(rows, columns, [=](int64_t begin, int64_t end) {
      map(to, from, begin, end, columns);
    });
  });
  return result;
}

template <class Op, RowKernels::Map2 RowKernels::* kernel>
Tensor backward(
    const Tensor& gradient,
    const Tensor& saved,
    int64_t dim,
    at::ScalarType input_dtype) {
  const auto* kernels = kernels_for(gradient, dim);
  if (kernels == nullptr || !is_direct(saved) ||
      input_dtype != gradient.scalar_type() ||
      saved.scalar_type() != input_dtype || saved.sizes() != gradient.sizes() ||
      !same_device(saved, gradient)) {
    return OnHost<Op>::run(gradient, saved, dim, input_dtype);
  }
  auto result = empty_as(gradient);
  const auto columns = gradient.sizes().back();
  const auto rows = gradient.numel() / columns;
  const auto* g = input(gradient);
  const auto* y = input(saved);
  auto* to = output(result);
  auto* map = kernels->*kernel;
  launch_on(record_of<Op>(), gradient, [=] {
    host_kernels::in_rows(rows, columns, [=](int64_t begin, int64_t end) {
      map(to, g, y, begin, end, columns);
    });
  });
  return result;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  using namespace at::_ops;
  m.impl("_softmax", TORCH_FN((forward<_softmax, &RowKernels::softmax>)));
  m.impl(
      "_log_softmax",
      TORCH_FN((forward<_log_softmax, &RowKernels::log_softmax>)));
  m.impl(
      "_softmax_backward_data",
      TORCH_FN(
          (backward<_softmax_backward_data, &RowKernels::softmax_backward>)));
  m.impl(
      "_log_softmax_backward_data",
      TORCH_FN((backward<
                _log_softmax_backward_data,
                &RowKernels::log_softmax_backward>)));
}

}  // namespace
}  // namespace neuron

// Direct kernels of sum, mean and amax: over everything, over the last dims,
// and sums over the first dims.
#include "dispatch/direct.h"

#include <ATen/ops/amax_ops.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/sum_ops.h>
#include <torch/library.h>

#include <bitset>

#include "host_kernels/parallel.h"
#include "host_kernels/rows.h"

namespace neuron {
namespace {

using at::Tensor;
using host_kernels::RowReduction;
using Dtype = std::optional<at::ScalarType>;

struct Plan {
  c10::SmallVector<int64_t, 6> sizes;  // of the result
  int64_t rows = 0;
  int64_t columns = 0;
  bool over_rows = false;  // the first dims go, not the last
};

// Reduced dims must be a run at the end (or, for sums, at the start).
bool make_plan(
    Plan& plan,
    const Tensor& self,
    at::OptionalIntArrayRef dims,
    bool keepdim) {
  const auto rank = self.dim();
  if (!is_direct(self) || self.numel() == 0 || rank == 0 || rank > 16) {
    return false;
  }
  std::bitset<16> reduced;
  if (!dims.has_value() || dims->empty()) {
    reduced.set();
  } else {
    for (const auto dim : *dims) {
      const auto wrapped = dim < 0 ? dim + rank : dim;
      if (wrapped < 0 || wrapped >= rank || reduced[wrapped]) {
        return false;
      }
      reduced.set(wrapped);
    }
  }
  int64_t changes = 0;
  int64_t kept = 1;
  for (int64_t dim = 0; dim < rank; ++dim) {
    changes += dim > 0 && reduced[dim] != reduced[dim - 1];
    if (!reduced[dim]) {
      kept *= self.size(dim);
      plan.sizes.push_back(self.size(dim));
    } else if (keepdim) {
      plan.sizes.push_back(1);
    }
  }
  if (changes > 1) {
    return false;
  }
  plan.over_rows = changes == 1 && reduced[0];
  plan.rows = plan.over_rows ? self.numel() / kept : kept;
  plan.columns = self.numel() / plan.rows;
  return true;
}

// The order of the additions is the CPU's only where it uses one thread.
bool sums_in_order(const Tensor& self) {
  return self.numel() < host_kernels::kGrain || at::get_num_threads() == 1;
}

void launch_reduction(
    const OpRecord& record,
    const Plan& plan,
    RowReduction kind,
    const Tensor& self,
    const Tensor& out) {
  const auto& kernels = *host_kernels::row_kernels(self.scalar_type());
  const auto* from = input(self);
  auto* to = output(out);
  const auto rows = plan.rows;
  const auto columns = plan.columns;
  if (plan.over_rows) {
    auto* sum = kernels.column_sum;
    launch_on(record, self, [=] { sum(to, from, rows, columns, 0, columns); });
    return;
  }
  auto* reduce = kernels.reduce[static_cast<int>(kind)];
  launch_on(record, self, [=] {
    host_kernels::in_rows(rows, columns, [=](int64_t begin, int64_t end) {
      reduce(to, from, begin, end, columns);
    });
  });
}

template <class Op>
bool direct(
    Tensor& result,
    RowReduction kind,
    const Tensor& self,
    at::OptionalIntArrayRef dims,
    bool keepdim,
    Dtype dtype) {
  const auto* kernels = host_kernels::row_kernels(self.scalar_type());
  Plan plan;
  if (kernels == nullptr ||
      dtype.value_or(self.scalar_type()) != self.scalar_type() ||
      !make_plan(plan, self, dims, keepdim)) {
    return false;
  }
  if (plan.over_rows &&
      (kind != RowReduction::sum || kernels->column_sum == nullptr)) {
    return false;
  }
  if (kind != RowReduction::max && !sums_in_order(self)) {
    return false;
  }
  result = empty(plan.sizes, self.scalar_type(), self.device().index());
  launch_reduction(record_of<Op>(), plan, kind, self, result);
  return true;
}

template <class Op, RowReduction kind>
Tensor reduce_all(const Tensor& self, Dtype dtype) {
  Tensor result;
  return direct<Op>(result, kind, self, std::nullopt, false, dtype)
             ? result
             : OnHost<Op>::run(self, dtype);
}

template <class Op, RowReduction kind>
Tensor reduce_dims(
    const Tensor& self,
    at::OptionalIntArrayRef dims,
    bool keepdim,
    Dtype dtype) {
  Tensor result;
  return direct<Op>(result, kind, self, dims, keepdim, dtype)
             ? result
             : OnHost<Op>::run(self, dims, keepdim, dtype);
}

Tensor amax(const Tensor& self, at::IntArrayRef dims, bool keepdim) {
  using Op = at::_ops::amax;
  Tensor result;
  return direct<Op>(
             result, RowReduction::max, self, dims, keepdim, std::nullopt)
             ? result
             : OnHost<Op>::run(self, dims, keepdim);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  using namespace at::_ops;
  m.impl("sum", TORCH_FN((reduce_all<sum, RowReduction::sum>)));
  m.impl(
      "sum.dim_IntList",
      TORCH_FN((reduce_dims<sum_dim_IntList, RowReduction::sum>)));
  m.impl("mean", TORCH_FN((reduce_all<mean, RowReduction::mean>)));
  m.impl("mean.dim", TORCH_FN((reduce_dims<mean_dim, RowReduction::mean>)));
  m.impl("amax", TORCH_FN(amax));
}

}  // namespace
}  // namespace neuron

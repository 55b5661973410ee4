// Direct kernels that pick whole rows or single elements by index.
#include "dispatch/direct.h"

#include <ATen/ops/embedding_ops.h>
#include <ATen/ops/gather_ops.h>
#include <ATen/ops/index_ops.h>
#include <ATen/ops/index_select_ops.h>
#include <torch/library.h>

#include "host_kernels/indexing.h"

namespace neuron {
namespace {

using at::Tensor;

bool is_index(const Tensor& index, const Tensor& self) {
  const auto dtype = index.scalar_type();
  return is_direct(index) && (dtype == at::kLong || dtype == at::kInt) &&
         same_device(index, self) && index.numel() > 0;
}

bool is_source(const Tensor& self) {
  return is_direct(self) && self.dim() > 0 && self.numel() > 0;
}

// result[i] = self[index[i]], rows of `self` along its first dim. `what`
// starts the error about an index that is out of range.
void launch_take_rows(
    const OpRecord& record,
    const Tensor& result,
    const Tensor& self,
    const Tensor& index,
    bool wraps,
    const char* what) {
  host_kernels::TakeRows take{};
  take.out = output(result);
  take.in = input(self);
  take.index = input(index);
  take.index_is_long = index.scalar_type() == at::kLong;
  take.count = index.numel();
  take.rows = self.size(0);
  take.row_bytes = static_cast<int64_t>(self.nbytes()) / self.size(0);
  take.wraps = wraps;
  launch_on(record, self, [take, what] {
    const auto bad = host_kernels::take_rows(take);
    TORCH_CHECK_INDEX(
        bad < 0,
        what,
        host_kernels::index_at(take, bad),
        " is out of bounds for dimension 0 with size ",
        take.rows);
  });
}

Tensor rows_by(
    const OpRecord& record,
    const Tensor& self,
    const Tensor& index,
    bool wraps,
    const char* what) {
  c10::SmallVector<int64_t, 8> sizes(
      index.sizes().begin(), index.sizes().end());
  sizes.append(self.sizes().begin() + 1, self.sizes().end());
  auto result = empty(sizes, self.scalar_type(), self.device().index());
  if (result.numel() > 0) {
    launch_take_rows(record, result, self, index, wraps, what);
  }
  return result;
}

Tensor embedding(
    const Tensor& weight,
    const Tensor& indices,
    c10::SymInt padding,
    bool scale,
    bool sparse) {
  using Op = at::_ops::embedding;
  if (!is_source(weight) || weight.dim() != 2 || !is_index(indices, weight)) {
    return OnHost<Op>::run(weight, indices, std::move(padding), scale, sparse);
  }
  return rows_by(
      record_of<Op>(), weight, indices, false, "index out of range in self: ");
}

Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  using Op = at::_ops::index_select;
  if (!is_source(self) || (dim != 0 && dim != -self.dim()) ||
      !is_index(index, self) || index.dim() != 1) {
    return OnHost<Op>::run(self, dim, index);
  }
  return rows_by(
      record_of<Op>(), self, index, false, "index out of range in self: ");
}

Tensor index(
    const Tensor& self, const c10::List<std::optional<Tensor>>& indices) {
  using Op = at::_ops::index_Tensor;
  if (indices.size() == 1 && is_source(self)) {
    const std::optional<Tensor> first = indices.get(0);
    if (first.has_value() && is_index(*first, self)) {
      return rows_by(record_of<Op>(), self, *first, true, "index ");
    }
  }
  return OnHost<Op>::run(self, indices);
}

Tensor gather(
    const Tensor& self,
    int64_t dim,
    const Tensor& index,
    bool sparse_gradient) {
  using Op = at::_ops::gather;
  const auto rank = self.dim();
  const auto leading = [](const Tensor& tensor) {
    return tensor.sizes().slice(0, tensor.sizes().size() - 1);
  };
  if (!is_source(self) || (dim != -1 && dim != rank - 1) ||
      !is_index(index, self) || index.scalar_type() != at::kLong ||
      index.dim() != rank || leading(index) != leading(self)) {
    return OnHost<Op>::run(self, dim, index, sparse_gradient);
  }
  auto result = empty(index.sizes(), self.scalar_type(), self.device().index());
  host_kernels::Gather work{};
  work.out = output(result);
  work.in = input(self);
  work.index = static_cast<const int64_t*>(input(index));
  work.rows = self.numel() / self.sizes().back();
  work.in_columns = self.sizes().back();
  work.out_columns = index.sizes().back();
  work.itemsize = static_cast<int64_t>(self.itemsize());
  const auto last = rank - 1;
  launch_on(record_of<Op>(), self, [work, last] {
    const auto bad = host_kernels::gather(work);
    TORCH_CHECK(
        bad < 0,
        "index ",
        work.index[bad < 0 ? 0 : bad],
        " is out of bounds for dimension ",
        last,
        " with size ",
        work.in_columns);
  });
  return result;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("embedding", TORCH_FN(embedding));
  m.impl("index_select", TORCH_FN(index_select));
  m.impl("index.Tensor", TORCH_FN(index));
  m.impl("gather", TORCH_FN(gather));
}

}  // namespace
}  // namespace neuron

// Direct kernels of cat, where and masked_fill.
#include "dispatch/direct.h"

#include <ATen/ops/cat_ops.h>
#include <ATen/ops/masked_fill_ops.h>
#include <ATen/ops/where_ops.h>
#include <c10/core/Scalar.h>
#include <torch/library.h>

#include <cstring>
#include <memory>
#include <vector>

#include "host_kernels/parallel.h"

namespace neuron {
namespace {

using at::Tensor;

struct Piece {
  const char* data;
  int64_t row_bytes;
};

bool same_but_for(const Tensor& a, const Tensor& b, int64_t dim) {
  if (a.dim() != b.dim()) {
    return false;
  }
  for (int64_t i = 0; i < a.dim(); ++i) {
    if (i != dim && a.size(i) != b.size(i)) {
      return false;
    }
  }
  return true;
}

Tensor cat(const at::ITensorListRef& tensors, int64_t dim) {
  using Op = at::_ops::cat;
  const auto list = tensors.materialize();
  const auto give_up = [&] { return OnHost<Op>::run(tensors, dim); };
  if (list.empty() || !is_direct(list[0].get())) {
    return give_up();
  }
  const Tensor& first = list[0].get();
  const auto rank = first.dim();
  const auto wrapped = dim < 0 ? dim + rank : dim;
  if (rank == 0 || wrapped < 0 || wrapped >= rank) {
    return give_up();
  }
  int64_t size = 0;
  for (const Tensor& tensor : list) {
    if (!is_direct(tensor) || tensor.numel() == 0 ||
        tensor.scalar_type() != first.scalar_type() ||
        !same_device(tensor, first) || !same_but_for(tensor, first, wrapped)) {
      return give_up();
    }
    size += tensor.size(wrapped);
  }
  c10::SmallVector<int64_t, 6> sizes(
      first.sizes().begin(), first.sizes().end());
  sizes[static_cast<size_t>(wrapped)] = size;
  auto result = empty(sizes, first.scalar_type(), first.device().index());
  const auto rows = c10::multiply_integers(
      first.sizes().begin(), first.sizes().begin() + wrapped);
  auto pieces = std::make_shared<std::vector<Piece>>();
  pieces->reserve(list.size());
  for (const Tensor& tensor : list) {
    pieces->push_back(
        {static_cast<const char*>(input(tensor)),
         static_cast<int64_t>(tensor.nbytes()) / rows});
  }
  auto* out = static_cast<char*>(output(result));
  const auto out_row = static_cast<int64_t>(result.nbytes()) / rows;
  launch_on(record_of<Op>(), first, [pieces, out, rows, out_row] {
    host_kernels::in_rows(
        rows, out_row / 4 + 1, [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            auto* to = out + row * out_row;
            for (const auto& piece : *pieces) {
              std::memcpy(
                  to,
                  piece.data + row * piece.row_bytes,
                  static_cast<size_t>(piece.row_bytes));
              to += piece.row_bytes;
            }
          }
        });
  });
  return result;
}

template <class T>
void choose(
    void* out,
    const void* condition,
    const void* yes,
    const void* no,
    int64_t begin,
    int64_t end) {
  const auto* take = static_cast<const uint8_t*>(condition);
  const auto* a = static_cast<const T*>(yes);
  const auto* b = static_cast<const T*>(no);
  auto* to = static_cast<T*>(out);
  for (int64_t i = begin; i < end; ++i) {
    to[i] = take[i] != 0 ? a[i] : b[i];
  }
}

// `out` may be `self`.
template <class T>
void fill_masked(
    void* out,
    const void* self,
    const void* mask,
    const void* value,
    int64_t begin,
    int64_t end) {
  T element;
  std::memcpy(&element, value, sizeof(element));
  const auto* take = static_cast<const uint8_t*>(mask);
  const auto* from = static_cast<const T*>(self);
  auto* to = static_cast<T*>(out);
  for (int64_t i = begin; i < end; ++i) {
    to[i] = take[i] != 0 ? element : from[i];
  }
}

// f of a type that is `itemsize` bytes; true if there is one.
template <class F>
bool by_size(size_t itemsize, F&& f) {
  switch (itemsize) {
    case 1:
      f(uint8_t());
      return true;
    case 2:
      f(uint16_t());
      return true;
    case 4:
      f(uint32_t());
      return true;
    case 8:
      f(uint64_t());
      return true;
    default:
      return false;
  }
}

Tensor where(const Tensor& condition, const Tensor& yes, const Tensor& no) {
  using Op = at::_ops::where_self;
  const bool takes =
      is_direct(condition) && is_direct(yes) && is_direct(no) &&
      condition.scalar_type() == at::kBool &&
      yes.scalar_type() == no.scalar_type() && yes.sizes() == no.sizes() &&
      condition.sizes() == yes.sizes() && same_device(condition, yes) &&
      same_device(yes, no) && yes.numel() > 0 && yes.itemsize() <= 8;
  if (!takes) {
    return OnHost<Op>::run(condition, yes, no);
  }
  auto result = empty_as(yes);
  const auto* c = input(condition);
  const auto* a = input(yes);
  const auto* b = input(no);
  auto* to = output(result);
  const auto count = yes.numel();
  by_size(yes.itemsize(), [&]<class T>(T) {
    launch_on(record_of<Op>(), yes, [=] {
      host_kernels::in_parts(count, [=](int64_t begin, int64_t end) {
        choose<T>(to, c, a, b, begin, end);
      });
    });
  });
  return result;
}

bool masked_fill_takes(
    const Tensor& self, const Tensor& mask, const at::Scalar& value) {
  const bool number =
      !value.isComplex() && !value.isSymbolic() &&
      (self.is_floating_point() || (value.isIntegral(/*includeBool=*/true) &&
                                    self.scalar_type() == at::kLong));
  return number && is_direct(self) && is_direct(mask) &&
         mask.scalar_type() == at::kBool && mask.sizes() == self.sizes() &&
         same_device(self, mask) && self.numel() > 0;
}

void launch_masked_fill(
    const OpRecord& record,
    const Tensor& out,
    const Tensor& self,
    const Tensor& mask,
    const at::Scalar& value) {
  uint64_t bits = 0;
  const auto put = [&bits](auto element) {
    std::memcpy(&bits, &element, sizeof(element));
  };
  switch (self.scalar_type()) {
    case at::kLong:
      put(value.to<int64_t>());
      break;
    case at::kDouble:
      put(value.to<double>());
      break;
    case at::kHalf:
      put(value.to<c10::Half>());
      break;
    case at::kBFloat16:
      put(value.to<c10::BFloat16>());
      break;
    default:
      put(value.to<float>());
      break;
  }
  auto* to = output(out);
  const auto* from = input(self);
  const auto* take = input(mask);
  const auto count = self.numel();
  by_size(self.itemsize(), [&]<class T>(T) {
    launch_on(record, self, [=] {
      host_kernels::in_parts(count, [=](int64_t begin, int64_t end) {
        fill_masked<T>(to, from, take, &bits, begin, end);
      });
    });
  });
}

bool is_narrow_float(const Tensor& self) {
  return self.is_floating_point() && self.itemsize() == 1;
}

Tensor masked_fill(
    const Tensor& self, const Tensor& mask, const at::Scalar& value) {
  using Op = at::_ops::masked_fill_Scalar;
  if (!masked_fill_takes(self, mask, value) || is_narrow_float(self)) {
    return OnHost<Op>::run(self, mask, value);
  }
  auto result = empty_as(self);
  launch_masked_fill(record_of<Op>(), result, self, mask, value);
  return result;
}

Tensor& masked_fill_(
    Tensor& self, const Tensor& mask, const at::Scalar& value) {
  using Op = at::_ops::masked_fill__Scalar;
  if (!masked_fill_takes(self, mask, value) || is_narrow_float(self) ||
      same_storage(self, mask)) {
    return OnHost<Op>::run(self, mask, value);
  }
  launch_masked_fill(record_of<Op>(), self, self, mask, value);
  return self;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("cat", TORCH_FN(cat));
  m.impl("where.self", TORCH_FN(where));
  m.impl("masked_fill.Scalar", TORCH_FN(masked_fill));
  m.impl("masked_fill_.Scalar", TORCH_FN(masked_fill_));
}

}  // namespace
}  // namespace neuron

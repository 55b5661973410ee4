// Direct kernels of the list ops that optimizers and gradient clipping use:
// one launch for all tensors of a list.
#include "dispatch/foreach.h"

#include <ATen/ops/_foreach_add_ops.h>
#include <ATen/ops/_foreach_addcdiv_ops.h>
#include <ATen/ops/_foreach_addcmul_ops.h>
#include <ATen/ops/_foreach_div_ops.h>
#include <ATen/ops/_foreach_lerp_ops.h>
#include <ATen/ops/_foreach_mul_ops.h>
#include <ATen/ops/_foreach_sqrt_ops.h>
#include <ATen/ops/_foreach_zero_ops.h>
#include <torch/library.h>

#include <cstring>

namespace neuron {
namespace {

using at::Scalar;
using at::Tensor;
using at::TensorList;
using host_kernels::Binary;
using host_kernels::Ternary;
using host_kernels::Unary;

using Scalars = at::ArrayRef<Scalar>;

bool is_number(const Scalar& scalar) {
  return !scalar.isComplex() && !scalar.isSymbolic();
}

bool are_numbers(Scalars scalars, size_t count) {
  return scalars.size() == count &&
         std::all_of(scalars.begin(), scalars.end(), is_number);
}

// tensor op= number, for each.
bool with_numbers(
    const OpRecord& record, Binary kind, TensorList self, Scalars scalars) {
  if (!one_of_a_kind(self) ||
      (scalars.size() != 1 && scalars.size() != self.size()) ||
      !std::all_of(scalars.begin(), scalars.end(), is_number)) {
    return false;
  }
  auto* loop =
      host_kernels::binary_loops(kind, self[0].scalar_type()).right_value;
  if (loop == nullptr || !self[0].is_floating_point() ||
      self[0].scalar_type() == at::kDouble) {
    return false;
  }
  ListWork work(self, {});
  // The CPU multiplies list by number with the number first, so rounded.
  work.set_values(
      scalars, self[0].scalar_type(), /*rounded=*/kind != Binary::divide);
  launch_list(record, self, std::move(work), [loop](const ListItem& item) {
    loop(item.out, item.out, &item.value, item.count, 0);
  });
  return true;
}

template <class Op, Binary kind>
void number_(TensorList self, const Scalar& scalar) {
  if (!with_numbers(record_of<Op>(), kind, self, scalar)) {
    OnHost<Op>::run(self, scalar);
  }
}

template <class Op, Binary kind>
void numbers_(TensorList self, Scalars scalars) {
  if (scalars.size() != self.size() ||
      !with_numbers(record_of<Op>(), kind, self, scalars)) {
    OnHost<Op>::run(self, scalars);
  }
}

// tensor op= other, for each.
bool with_list(
    const OpRecord& record,
    Binary kind,
    TensorList self,
    TensorList other,
    double parameter) {
  if (!one_of_a_kind(self) || !match(self, other)) {
    return false;
  }
  auto* loop = host_kernels::binary_loops(kind, self[0].scalar_type()).both;
  if (loop == nullptr) {
    return false;
  }
  ListWork work(self, {other});
  launch_list(
      record, self, std::move(work), [loop, parameter](const ListItem& item) {
        loop(item.out, item.out, item.in[0], item.count, parameter);
      });
  return true;
}

void add_list_(TensorList self, TensorList other, const Scalar& alpha) {
  using Op = at::_ops::_foreach_add__List;
  const bool plain = is_number(alpha) && alpha.toDouble() == 1.0;
  const bool scaled =
      is_number(alpha) && !self.empty() && self[0].is_floating_point();
  if (!(plain || scaled) || !with_list(
                                record_of<Op>(),
                                plain ? Binary::add : Binary::add_scaled,
                                self,
                                other,
                                plain ? 0 : alpha.toDouble())) {
    OnHost<Op>::run(self, other, alpha);
  }
}

template <class Op, Binary kind>
void list_(TensorList self, TensorList other) {
  if (!with_list(record_of<Op>(), kind, self, other, 0)) {
    OnHost<Op>::run(self, other);
  }
}

// tensor = f(tensor, a, b, number), for each.
bool with_two_lists(
    const OpRecord& record,
    Ternary kind,
    TensorList self,
    TensorList a,
    TensorList b,
    Scalars scalars) {
  if (!one_of_a_kind(self) || !match(self, a) || !match(self, b) ||
      (scalars.size() != 1 && !are_numbers(scalars, self.size())) ||
      !is_number(scalars[0])) {
    return false;
  }
  auto* loop = host_kernels::ternary_loop(kind, self[0].scalar_type());
  if (loop == nullptr) {
    return false;
  }
  ListWork work(self, {a, b});
  work.set_parameters(scalars);
  launch_list(record, self, std::move(work), [loop](const ListItem& item) {
    loop(
        item.out, item.out, item.in[0], item.in[1], item.count, item.parameter);
  });
  return true;
}

template <class Op, Ternary kind>
void two_lists_(
    TensorList self, TensorList a, TensorList b, const Scalar& value) {
  if (!with_two_lists(record_of<Op>(), kind, self, a, b, value)) {
    OnHost<Op>::run(self, a, b, value);
  }
}

template <class Op, Ternary kind>
void two_lists_numbers_(
    TensorList self, TensorList a, TensorList b, Scalars scalars) {
  if (scalars.size() != self.size() ||
      !with_two_lists(record_of<Op>(), kind, self, a, b, scalars)) {
    OnHost<Op>::run(self, a, b, scalars);
  }
}

void lerp_(TensorList self, TensorList end, const Scalar& weight) {
  using Op = at::_ops::_foreach_lerp__Scalar;
  if (!with_two_lists(record_of<Op>(), Ternary::lerp, self, end, end, weight)) {
    OnHost<Op>::run(self, end, weight);
  }
}

bool sqrt_into(const OpRecord& record, TensorList self, TensorList out) {
  auto* loop = host_kernels::unary_loop(Unary::sqrt, self[0].scalar_type());
  if (loop == nullptr) {
    return false;
  }
  ListWork work(out, {self});
  launch_list(record, self, std::move(work), [loop](const ListItem& item) {
    loop(item.out, item.in[0], item.count);
  });
  return true;
}

std::vector<Tensor> sqrt(TensorList self) {
  using Op = at::_ops::_foreach_sqrt;
  if (one_of_a_kind(self)) {
    std::vector<Tensor> results;
    results.reserve(self.size());
    for (const auto& tensor : self) {
      results.push_back(empty_as(tensor));
    }
    if (sqrt_into(record_of<Op>(), self, results)) {
      return results;
    }
  }
  return OnHost<Op>::run(self);
}

void sqrt_(TensorList self) {
  using Op = at::_ops::_foreach_sqrt_;
  if (!one_of_a_kind(self) || !sqrt_into(record_of<Op>(), self, self)) {
    OnHost<Op>::run(self);
  }
}

void zero_(TensorList self) {
  using Op = at::_ops::_foreach_zero_;
  if (!one_of_a_kind(self)) {
    OnHost<Op>::run(self);
    return;
  }
  const auto itemsize = self[0].itemsize();
  launch_list(
      record_of<Op>(),
      self,
      ListWork(self, {}),
      [itemsize](const ListItem& item) {
        std::memset(item.out, 0, static_cast<size_t>(item.count) * itemsize);
      });
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  using namespace at::_ops;
  m.impl(
      "_foreach_add_.Scalar",
      TORCH_FN((number_<_foreach_add__Scalar, Binary::add>)));
  m.impl("_foreach_add_.List", TORCH_FN(add_list_));
  m.impl(
      "_foreach_mul_.Scalar",
      TORCH_FN((number_<_foreach_mul__Scalar, Binary::multiply>)));
  m.impl(
      "_foreach_mul_.ScalarList",
      TORCH_FN((numbers_<_foreach_mul__ScalarList, Binary::multiply>)));
  m.impl(
      "_foreach_mul_.List",
      TORCH_FN((list_<_foreach_mul__List, Binary::multiply>)));
  m.impl(
      "_foreach_div_.Scalar",
      TORCH_FN((number_<_foreach_div__Scalar, Binary::divide>)));
  m.impl(
      "_foreach_div_.ScalarList",
      TORCH_FN((numbers_<_foreach_div__ScalarList, Binary::divide>)));
  m.impl(
      "_foreach_div_.List",
      TORCH_FN((list_<_foreach_div__List, Binary::divide>)));
  m.impl(
      "_foreach_addcmul_.Scalar",
      TORCH_FN((two_lists_<_foreach_addcmul__Scalar, Ternary::addcmul>)));
  m.impl(
      "_foreach_addcdiv_.Scalar",
      TORCH_FN((two_lists_<_foreach_addcdiv__Scalar, Ternary::addcdiv>)));
  m.impl(
      "_foreach_addcdiv_.ScalarList",
      TORCH_FN((
          two_lists_numbers_<_foreach_addcdiv__ScalarList, Ternary::addcdiv>)));
  m.impl("_foreach_lerp_.Scalar", TORCH_FN(lerp_));
  m.impl("_foreach_sqrt", TORCH_FN(sqrt));
  m.impl("_foreach_sqrt_", TORCH_FN(sqrt_));
  m.impl("_foreach_zero_", TORCH_FN(zero_));
}

}  // namespace
}  // namespace neuron

// Direct kernels of matrix products: fp32 by the host's BLAS, bf16 and fp16
// by our own with fp32 sums.
#include "dispatch/matmul.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/baddbmm_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/linear_native.h>
#include <ATen/ops/linear_ops.h>
#include <ATen/ops/mm_ops.h>
#include <torch/library.h>

#include <limits>

namespace neuron {
namespace {

using at::Scalar;
using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

// Operands of one dtype and device whose sizes fit and are not empty.
bool takes(const Tensor& a, const Tensor& b, int64_t dims) {
  constexpr int64_t most = std::numeric_limits<int>::max();
  if (!is_matrix(a, dims) || !is_matrix(b, dims) ||
      a.scalar_type() != b.scalar_type() || !same_device(a, b) ||
      !multiplies(a.scalar_type())) {
    return false;
  }
  const auto m = a.size(dims - 2);
  const auto k = a.size(dims - 1);
  const auto n = b.size(dims - 1);
  return b.size(dims - 2) == k && m > 0 && n > 0 && k > 0 && m <= most &&
         n <= most && k <= most &&
         (dims == 2 || (a.size(0) == b.size(0) && a.size(0) > 0));
}

bool is_output(const Tensor& out, const Tensor& a, const Tensor& b) {
  const auto dims = a.dim();
  return is_direct(out) && out.dim() == dims && same_device(out, a) &&
         out.scalar_type() == a.scalar_type() &&
         out.size(dims - 2) == a.size(dims - 2) &&
         out.size(dims - 1) == b.size(dims - 1) &&
         (dims == 2 || out.size(0) == a.size(0)) && !same_storage(out, a) &&
         !same_storage(out, b);
}

// Broadcasts to the product's sizes, and is of its dtype.
bool is_addend(const Tensor& addend, const Tensor& a, const Tensor& b) {
  const auto dims = a.dim();
  if (!is_matrix(addend, addend.dim()) || addend.dim() > dims ||
      addend.scalar_type() != a.scalar_type() || !same_device(addend, a)) {
    return false;
  }
  const auto fits = [&](int64_t from_end, int64_t size) {
    const auto dim = addend.dim() - from_end;
    return dim < 0 || addend.size(dim) == size || addend.size(dim) == 1;
  };
  return fits(1, b.size(dims - 1)) && fits(2, a.size(dims - 2)) &&
         (dims == 2 || fits(3, a.size(0)));
}

bool is_real(const Scalar& number) {
  return !number.isComplex() && !number.isSymbolic();
}

Tensor fresh(const Tensor& a, const Tensor& b) {
  const int device = a.device().index();
  return a.dim() == 2
             ? empty({a.size(0), b.size(1)}, a.scalar_type(), device)
             : empty(
                   {a.size(0), a.size(1), b.size(2)}, a.scalar_type(), device);
}

template <class Op, int64_t dims>
Tensor product(const Tensor& a, const Tensor& b) {
  if (!takes(a, b, dims)) {
    return OnHost<Op>::run(a, b);
  }
  auto out = fresh(a, b);
  launch_matmul(record_of<Op>(), out, a, b, Tensor(), 1, 0);
  return out;
}

template <class Op, int64_t dims>
Tensor& product_out(const Tensor& a, const Tensor& b, Tensor& out) {
  if (!takes(a, b, dims) || !is_output(out, a, b)) {
    return OnHost<Op>::run(a, b, out);
  }
  launch_matmul(record_of<Op>(), out, a, b, Tensor(), 1, 0);
  return out;
}

template <class Op, int64_t dims>
Tensor sum_product(
    const Tensor& addend,
    const Tensor& a,
    const Tensor& b,
    const Scalar& beta,
    const Scalar& alpha) {
  if (!takes(a, b, dims) || !is_addend(addend, a, b) || !is_real(beta) ||
      !is_real(alpha)) {
    return OnHost<Op>::run(addend, a, b, beta, alpha);
  }
  auto out = fresh(a, b);
  launch_matmul(
      record_of<Op>(), out, a, b, addend, alpha.toDouble(), beta.toDouble());
  return out;
}

template <class Op, int64_t dims>
Tensor& sum_product_(
    Tensor& self,
    const Tensor& a,
    const Tensor& b,
    const Scalar& beta,
    const Scalar& alpha) {
  if (!takes(a, b, dims) || !is_output(self, a, b) || !is_real(beta) ||
      !is_real(alpha)) {
    return OnHost<Op>::run(self, a, b, beta, alpha);
  }
  launch_matmul(
      record_of<Op>(), self, a, b, self, alpha.toDouble(), beta.toDouble());
  return self;
}

template <class Op, int64_t dims>
Tensor& sum_product_out(
    const Tensor& addend,
    const Tensor& a,
    const Tensor& b,
    const Scalar& beta,
    const Scalar& alpha,
    Tensor& out) {
  const auto separate = [&] {
    return addend.is_same(out) || !same_storage(addend, out);
  };
  if (!takes(a, b, dims) || !is_addend(addend, a, b) || !is_output(out, a, b) ||
      !separate() || !is_real(beta) || !is_real(alpha)) {
    return OnHost<Op>::run(addend, a, b, beta, alpha, out);
  }
  launch_matmul(
      record_of<Op>(), out, a, b, addend, alpha.toDouble(), beta.toDouble());
  return out;
}

// Rows of a contiguous input against a weight of [out, in] features.
bool linear_takes(
    const Tensor& self, const Tensor& weight, const OptionalTensor& bias) {
  constexpr int64_t most = std::numeric_limits<int>::max();
  if (!is_direct(self) || self.dim() < 2 || self.numel() == 0 ||
      !is_matrix(weight, 2) || weight.numel() == 0 ||
      weight.scalar_type() != self.scalar_type() ||
      !same_device(self, weight) || !multiplies(self.scalar_type()) ||
      weight.size(1) != self.size(-1) || weight.size(0) > most ||
      weight.size(1) > most || self.numel() / weight.size(1) > most) {
    return false;
  }
  return !bias.has_value() || !bias->defined() ||
         (is_direct(*bias) && bias->dim() == 1 &&
          bias->size(0) == weight.size(0) && same_device(self, *bias) &&
          bias->scalar_type() == self.scalar_type());
}

Tensor linear(
    const Tensor& self, const Tensor& weight, const OptionalTensor& bias) {
  if (!linear_takes(self, weight, bias)) {
    return at::native::linear(self, weight, bias);
  }
  c10::SmallVector<int64_t, 6> sizes(self.sizes().begin(), self.sizes().end());
  sizes.back() = weight.size(0);
  auto out = empty(sizes, self.scalar_type(), self.device().index());
  launch_linear(
      record_of<at::_ops::linear>(),
      out,
      self,
      weight,
      bias.value_or(Tensor()));
  return out;
}

bool needs_gradient(const Tensor& tensor) {
  return tensor.defined() &&
         (tensor.requires_grad() || tensor._fw_grad(/*level=*/0).defined());
}

// With gradients, linear stays what it is on every device: a transpose and a
// product, each with its derivatives.
Tensor linear_autograd(
    const Tensor& self, const Tensor& weight, const OptionalTensor& bias) {
  const bool gradients = needs_gradient(self) || needs_gradient(weight) ||
                         (bias.has_value() && needs_gradient(*bias));
  if (gradients && (at::GradMode::is_enabled() ||
                    c10::AutogradState::get_tls_state().get_fw_grad_mode())) {
    return at::native::linear(self, weight, bias);
  }
  const at::AutoDispatchBelowADInplaceOrView below;
  return at::_ops::linear::call(self, weight, bias);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  using namespace at::_ops;
  m.impl("mm", TORCH_FN((product<mm, 2>)));
  m.impl("mm.out", TORCH_FN((product_out<mm_out, 2>)));
  m.impl("bmm", TORCH_FN((product<bmm, 3>)));
  m.impl("bmm.out", TORCH_FN((product_out<bmm_out, 3>)));
  m.impl("addmm", TORCH_FN((sum_product<addmm, 2>)));
  m.impl("addmm_", TORCH_FN((sum_product_<addmm_, 2>)));
  m.impl("addmm.out", TORCH_FN((sum_product_out<addmm_out, 2>)));
  m.impl("baddbmm", TORCH_FN((sum_product<baddbmm, 3>)));
  m.impl("baddbmm_", TORCH_FN((sum_product_<baddbmm_, 3>)));
  m.impl("baddbmm.out", TORCH_FN((sum_product_out<baddbmm_out, 3>)));
  m.impl("linear", TORCH_FN(linear));
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("linear", TORCH_FN(linear_autograd));
}

}  // namespace
}  // namespace neuron

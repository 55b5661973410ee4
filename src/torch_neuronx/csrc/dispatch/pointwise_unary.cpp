// Direct kernels of elementwise functions of one tensor.
#include "dispatch/direct.h"

#include <ATen/ops/abs_ops.h>
#include <ATen/ops/exp_ops.h>
#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/log_ops.h>
#include <ATen/ops/neg_ops.h>
#include <ATen/ops/pow_ops.h>
#include <ATen/ops/reciprocal_ops.h>
#include <ATen/ops/relu_ops.h>
#include <ATen/ops/rsqrt_ops.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/silu_ops.h>
#include <ATen/ops/sqrt_ops.h>
#include <ATen/ops/tanh_ops.h>
#include <torch/library.h>

#include "host_kernels/parallel.h"
#include "host_kernels/pointwise.h"

namespace neuron {
namespace {

using host_kernels::Unary;

host_kernels::UnaryLoop loop_for(Unary kind, const at::Tensor& self) {
  return is_direct(self) && self.numel() > 0
             ? host_kernels::unary_loop(kind, self.scalar_type())
             : nullptr;
}

void launch_unary(
    const OpRecord& record,
    host_kernels::UnaryLoop loop,
    const at::Tensor& self,
    const at::Tensor& out) {
  const auto* from = static_cast<const char*>(input(self));
  auto* to = static_cast<char*>(output(out));
  const auto count = self.numel();
  const auto itemsize = static_cast<int64_t>(self.itemsize());
  launch_on(record, self, [=] {
    host_kernels::in_parts(count, [=](int64_t begin, int64_t end) {
      loop(to + begin * itemsize, from + begin * itemsize, end - begin);
    });
  });
}

template <class Op, Unary kind>
at::Tensor unary(const at::Tensor& self) {
  if (auto* loop = loop_for(kind, self)) {
    auto out = empty_as(self);
    launch_unary(record_of<Op>(), loop, self, out);
    return out;
  }
  return OnHost<Op>::run(self);
}

template <class Op, Unary kind>
at::Tensor& unary_(at::Tensor& self) {
  if (auto* loop = loop_for(kind, self)) {
    launch_unary(record_of<Op>(), loop, self, self);
    return self;
  }
  return OnHost<Op>::run(self);
}

template <class Op, Unary kind>
at::Tensor& unary_out(const at::Tensor& self, at::Tensor& out) {
  auto* loop = loop_for(kind, self);
  if (loop != nullptr && is_direct(out) && same_device(self, out) &&
      out.scalar_type() == self.scalar_type() && out.sizes() == self.sizes() &&
      may_write(out, self)) {
    launch_unary(record_of<Op>(), loop, self, out);
    return out;
  }
  return OnHost<Op>::run(self, out);
}

at::Tensor gelu(const at::Tensor& self, std::string_view approximate) {
  const auto kind = approximate == "tanh" ? Unary::gelu_tanh : Unary::gelu;
  if (kind == Unary::gelu_tanh || approximate == "none") {
    if (auto* loop = loop_for(kind, self)) {
      auto out = empty_as(self);
      launch_unary(record_of<at::_ops::gelu>(), loop, self, out);
      return out;
    }
  }
  return OnHost<at::_ops::gelu>::run(self, approximate);
}

at::Tensor pow_scalar(const at::Tensor& self, const at::Scalar& exponent) {
  if (!exponent.isComplex() && exponent.toDouble() == 2.0 &&
      (exponent.isIntegral(/*includeBool=*/true) || self.is_floating_point())) {
    if (auto* loop = loop_for(Unary::square, self)) {
      auto out = empty_as(self);
      launch_unary(record_of<at::_ops::pow_Tensor_Scalar>(), loop, self, out);
      return out;
    }
  }
  return OnHost<at::_ops::pow_Tensor_Scalar>::run(self, exponent);
}

#define REGISTER_UNARY(name)                                             \
  m.impl(#name, TORCH_FN((unary<at::_ops::name, Unary::name>)));         \
  m.impl(#name "_", TORCH_FN((unary_<at::_ops::name##_, Unary::name>))); \
  m.impl(#name ".out", TORCH_FN((unary_out<at::_ops::name##_out, Unary::name>)))

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  REGISTER_UNARY(neg);
  REGISTER_UNARY(abs);
  REGISTER_UNARY(exp);
  REGISTER_UNARY(log);
  REGISTER_UNARY(sqrt);
  REGISTER_UNARY(rsqrt);
  REGISTER_UNARY(reciprocal);
  REGISTER_UNARY(relu);
  REGISTER_UNARY(silu);
  REGISTER_UNARY(sigmoid);
  REGISTER_UNARY(tanh);
  m.impl("gelu", TORCH_FN(gelu));
  m.impl("pow.Tensor_Scalar", TORCH_FN(pow_scalar));
}

#undef REGISTER_UNARY

}  // namespace
}  // namespace neuron

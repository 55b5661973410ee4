// Direct kernels of elementwise operators of two operands, and the backward
// of elementwise functions.
#include "dispatch/pointwise_binary.h"

#include <ATen/ops/add_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/eq_ops.h>
#include <ATen/ops/ge_ops.h>
#include <ATen/ops/gelu_backward_ops.h>
#include <ATen/ops/gt_ops.h>
#include <ATen/ops/le_ops.h>
#include <ATen/ops/lt_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/ne_ops.h>
#include <ATen/ops/rsub_ops.h>
#include <ATen/ops/sigmoid_backward_ops.h>
#include <ATen/ops/silu_backward_ops.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/tanh_backward_ops.h>
#include <ATen/ops/threshold_backward_ops.h>
#include <torch/library.h>

namespace neuron {
namespace {

using at::Scalar;
using at::Tensor;
using host_kernels::Binary;

// Runs the plan into a fresh tensor, or says that there is none.
template <class Op, class B>
bool direct(
    Tensor& result,
    Binary kind,
    const Tensor& a,
    const B& b,
    double parameter = 0) {
  BinaryPlan plan;
  if (!plan_binary(plan, kind, a, b)) {
    return false;
  }
  result = empty_as(*plan.shape, plan.out_dtype);
  launch_binary(record_of<Op>(), plan, result, parameter);
  return true;
}

template <class Op, class B>
bool direct_into(
    const Tensor& out,
    Binary kind,
    const Tensor& a,
    const B& b,
    double parameter = 0) {
  BinaryPlan plan;
  if (!plan_binary(plan, kind, a, b) || !fits_output(plan, out)) {
    return false;
  }
  launch_binary(record_of<Op>(), plan, out, parameter);
  return true;
}

// add and sub differ in the sign of alpha. A scaled operand is not taken for
// integers (alpha truncates), nor with a number (rounded before or after).
struct Sum {
  Binary kind;
  double alpha;
  bool taken;
};

Sum sum_of(Binary plain, const Scalar& alpha, const Tensor& a, bool number) {
  if (alpha.isComplex() || alpha.isSymbolic() || alpha.isBoolean()) {
    return {plain, 0, false};
  }
  const double value = alpha.toDouble();
  if (value == 1.0) {
    return {plain, 0, true};
  }
  return {
      Binary::add_scaled,
      plain == Binary::subtract ? -value : value,
      a.is_floating_point() && !number};
}

template <class Op, Binary plain>
Tensor sum(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  Tensor result;
  const auto how = sum_of(plain, alpha, a, b.is_cpu() || a.is_cpu());
  return how.taken && direct<Op>(result, how.kind, a, b, how.alpha)
             ? result
             : OnHost<Op>::run(a, b, alpha);
}

template <class Op, Binary plain>
Tensor& sum_(Tensor& a, const Tensor& b, const Scalar& alpha) {
  const auto how = sum_of(plain, alpha, a, b.is_cpu());
  return how.taken && direct_into<Op>(a, how.kind, a, b, how.alpha)
             ? a
             : OnHost<Op>::run(a, b, alpha);
}

template <class Op, Binary plain>
Tensor& sum_out(
    const Tensor& a, const Tensor& b, const Scalar& alpha, Tensor& out) {
  const auto how = sum_of(plain, alpha, a, b.is_cpu() || a.is_cpu());
  return how.taken && direct_into<Op>(out, how.kind, a, b, how.alpha)
             ? out
             : OnHost<Op>::run(a, b, alpha, out);
}

// B is a tensor or a Scalar.
template <class Op, Binary kind, class B>
Tensor binary(const Tensor& a, const B& b) {
  Tensor result;
  return direct<Op>(result, kind, a, b) ? result : OnHost<Op>::run(a, b);
}

template <class Op, Binary kind, class B>
Tensor& binary_(Tensor& a, const B& b) {
  return direct_into<Op>(a, kind, a, b) ? a : OnHost<Op>::run(a, b);
}

template <class Op, Binary kind, class B>
Tensor& binary_out(const Tensor& a, const B& b, Tensor& out) {
  return direct_into<Op>(out, kind, a, b) ? out : OnHost<Op>::run(a, b, out);
}

// A gradient and a saved tensor of the same shape; no broadcast.
template <class Op, class... Rest>
Tensor backward(
    Binary kind,
    double parameter,
    const Tensor& gradient,
    const Tensor& saved,
    const Rest&... rest) {
  Tensor result;
  return gradient.sizes() == saved.sizes() &&
                 direct<Op>(result, kind, gradient, saved, parameter)
             ? result
             : OnHost<Op>::run(gradient, saved, rest...);
}

Tensor threshold_backward(
    const Tensor& gradient, const Tensor& self, const Scalar& threshold) {
  return backward<at::_ops::threshold_backward>(
      Binary::threshold_backward,
      threshold.isComplex() ? 0 : threshold.toDouble(),
      gradient,
      self,
      threshold);
}

Tensor gelu_backward(
    const Tensor& gradient, const Tensor& self, std::string_view approximate) {
  return backward<at::_ops::gelu_backward>(
      approximate == "tanh" ? Binary::gelu_tanh_backward
                            : Binary::gelu_backward,
      0,
      gradient,
      self,
      approximate);
}

template <class Op, Binary kind>
Tensor activation_backward(const Tensor& gradient, const Tensor& saved) {
  return backward<Op>(kind, 0, gradient, saved);
}

#define REGISTER_SUM(name, kind)                                              \
  m.impl(#name ".Tensor", TORCH_FN((sum<at::_ops::name##_Tensor, kind>)));    \
  m.impl(#name "_.Tensor", TORCH_FN((sum_<at::_ops::name##__Tensor, kind>))); \
  m.impl(#name ".out", TORCH_FN((sum_out<at::_ops::name##_out, kind>)))

#define REGISTER_BINARY(name, kind)                                 \
  m.impl(                                                           \
      #name ".Tensor",                                              \
      TORCH_FN((binary<at::_ops::name##_Tensor, kind, Tensor>)));   \
  m.impl(                                                           \
      #name "_.Tensor",                                             \
      TORCH_FN((binary_<at::_ops::name##__Tensor, kind, Tensor>))); \
  m.impl(                                                           \
      #name ".out",                                                 \
      TORCH_FN((binary_out<at::_ops::name##_out, kind, Tensor>)))

#define REGISTER_COMPARISON(name, kind)                           \
  m.impl(                                                         \
      #name ".Tensor",                                            \
      TORCH_FN((binary<at::_ops::name##_Tensor, kind, Tensor>))); \
  m.impl(                                                         \
      #name ".Scalar",                                            \
      TORCH_FN((binary<at::_ops::name##_Scalar, kind, Scalar>))); \
  m.impl(                                                         \
      #name ".Tensor_out",                                        \
      TORCH_FN((binary_out<at::_ops::name##_Tensor_out, kind, Tensor>)))

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  REGISTER_SUM(add, Binary::add);
  REGISTER_SUM(sub, Binary::subtract);
  REGISTER_BINARY(mul, Binary::multiply);
  REGISTER_BINARY(div, Binary::divide);
  REGISTER_COMPARISON(eq, Binary::equal);
  REGISTER_COMPARISON(ne, Binary::not_equal);
  REGISTER_COMPARISON(lt, Binary::less);
  REGISTER_COMPARISON(le, Binary::less_equal);
  REGISTER_COMPARISON(gt, Binary::greater);
  REGISTER_COMPARISON(ge, Binary::greater_equal);
  m.impl("threshold_backward", TORCH_FN(threshold_backward));
  m.impl("gelu_backward", TORCH_FN(gelu_backward));
  m.impl(
      "silu_backward",
      TORCH_FN((activation_backward<
                at::_ops::silu_backward,
                Binary::silu_backward>)));
  m.impl(
      "sigmoid_backward",
      TORCH_FN((activation_backward<
                at::_ops::sigmoid_backward,
                Binary::sigmoid_backward>)));
  m.impl(
      "tanh_backward",
      TORCH_FN((activation_backward<
                at::_ops::tanh_backward,
                Binary::tanh_backward>)));
}

#undef REGISTER_SUM
#undef REGISTER_BINARY
#undef REGISTER_COMPARISON

}  // namespace
}  // namespace neuron

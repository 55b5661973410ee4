// Direct kernels of the negative log-likelihood loss without class weights.
#include "dispatch/direct.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/nll_loss_backward_ops.h>
#include <ATen/ops/nll_loss_forward_ops.h>
#include <torch/library.h>

#include "host_kernels/loss.h"

namespace neuron {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

bool takes(
    const Tensor& self,
    const Tensor& target,
    const OptionalTensor& weight,
    int64_t reduction,
    const c10::SymInt& ignored) {
  return is_direct(self) && self.dim() == 2 && self.numel() > 0 &&
         self.scalar_type() == at::kFloat && is_direct(target) &&
         target.dim() == 1 && target.size(0) == self.size(0) &&
         target.scalar_type() == at::kLong && same_device(self, target) &&
         (!weight.has_value() || !weight->defined()) &&
         (reduction == at::Reduction::Mean ||
          reduction == at::Reduction::Sum) &&
         !ignored.is_symbolic();
}

host_kernels::NllLoss loss_of(
    const Tensor& self, const Tensor& target, const c10::SymInt& ignored) {
  return {
      static_cast<const float*>(input(self)),
      static_cast<const int64_t*>(input(target)),
      self.size(0),
      self.size(1),
      ignored.as_int_unchecked()};
}

std::tuple<Tensor, Tensor> nll_loss_forward(
    const Tensor& self,
    const Tensor& target,
    const OptionalTensor& weight,
    int64_t reduction,
    c10::SymInt ignored) {
  using Op = at::_ops::nll_loss_forward;
  if (!takes(self, target, weight, reduction, ignored)) {
    return OnHost<Op>::run(self, target, weight, reduction, std::move(ignored));
  }
  const int device = self.device().index();
  auto result = empty({}, at::kFloat, device);
  auto total = empty({}, at::kFloat, device);
  const auto loss = loss_of(self, target, ignored);
  auto* to = static_cast<float*>(output(result));
  auto* weight_to = static_cast<float*>(output(total));
  const bool mean = reduction == at::Reduction::Mean;
  launch_on(record_of<Op>(), self, [=] {
    float sum = 0;
    int64_t counted = 0;
    const auto bad = host_kernels::nll_loss(loss, sum, counted);
    TORCH_CHECK_INDEX(
        bad < 0,
        "Target ",
        loss.target[bad < 0 ? 0 : bad],
        " is out of bounds.");
    *weight_to = static_cast<float>(counted);
    *to = mean ? sum / *weight_to : sum;
  });
  return {std::move(result), std::move(total)};
}

Tensor nll_loss_backward(
    const Tensor& gradient,
    const Tensor& self,
    const Tensor& target,
    const OptionalTensor& weight,
    int64_t reduction,
    c10::SymInt ignored,
    const Tensor& total) {
  using Op = at::_ops::nll_loss_backward;
  const auto is_value = [&](const Tensor& tensor) {
    return is_direct(tensor) && tensor.scalar_type() == at::kFloat &&
           tensor.numel() == 1 && tensor.dim() <= 1 &&
           same_device(tensor, self);
  };
  if (!takes(self, target, weight, reduction, ignored) || !is_value(gradient) ||
      !is_value(total)) {
    return OnHost<Op>::run(
        gradient, self, target, weight, reduction, std::move(ignored), total);
  }
  auto result = empty_as(self);
  const auto loss = loss_of(self, target, ignored);
  const auto* g = static_cast<const float*>(input(gradient));
  const auto* count = static_cast<const float*>(input(total));
  auto* to = static_cast<float*>(output(result));
  const bool mean = reduction == at::Reduction::Mean;
  launch_on(record_of<Op>(), self, [=] {
    host_kernels::nll_loss_backward(loss, mean ? *g / *count : *g, to);
  });
  return result;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("nll_loss_forward", TORCH_FN(nll_loss_forward));
  m.impl("nll_loss_backward", TORCH_FN(nll_loss_backward));
}

}  // namespace
}  // namespace neuron

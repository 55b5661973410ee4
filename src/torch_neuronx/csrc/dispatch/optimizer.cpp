// Direct kernels of fused optimizer steps: one pass over memory, fp32
// arithmetic, each array rounded once.
#include "dispatch/foreach.h"

#include <ATen/ops/_fused_adam_ops.h>
#include <ATen/ops/_fused_adamw_ops.h>
#include <ATen/ops/_fused_sgd_ops.h>
#include <torch/library.h>

#include "host_kernels/optimizer.h"

namespace neuron {
namespace {

using at::Tensor;
using at::TensorList;
using host_kernels::AdamOptions;
using host_kernels::OptimizedArray;
using host_kernels::SgdOptions;
using OptionalTensor = std::optional<Tensor>;

bool is_given(const OptionalTensor& tensor) {
  return tensor.has_value() && tensor->defined();
}

bool is_float(c10::ScalarType dtype) {
  return dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kHalf;
}

// States shaped as their parameters, all of the parameters' dtype or fp32.
bool are_states(TensorList self, TensorList states) {
  if (states.size() != self.size() || !one_of_a_kind(states)) {
    return false;
  }
  const auto dtype = states[0].scalar_type();
  if (dtype != self[0].scalar_type() && dtype != at::kFloat) {
    return false;
  }
  for (size_t i = 0; i < self.size(); ++i) {
    if (states[i].sizes() != self[i].sizes() ||
        !same_device(states[i], self[i]) || same_storage(states[i], self[i])) {
      return false;
    }
  }
  return true;
}

bool are_steps(TensorList self, TensorList steps) {
  if (steps.size() != self.size()) {
    return false;
  }
  for (size_t i = 0; i < self.size(); ++i) {
    if (!is_direct(steps[i]) || steps[i].scalar_type() != at::kFloat ||
        steps[i].numel() != 1 || !same_device(steps[i], self[i])) {
      return false;
    }
  }
  return true;
}

bool takes(
    TensorList self,
    TensorList gradients,
    const OptionalTensor& grad_scale,
    const OptionalTensor& found_inf) {
  return !is_given(grad_scale) && !is_given(found_inf) && one_of_a_kind(self) &&
         is_float(self[0].scalar_type()) && match(self, gradients);
}

template <class Op, bool decoupled>
void adam(
    TensorList self,
    TensorList gradients,
    TensorList first,
    TensorList second,
    TensorList maximum,
    TensorList steps,
    double learning_rate,
    double beta1,
    double beta2,
    double weight_decay,
    double eps,
    bool amsgrad,
    bool maximize,
    const OptionalTensor& grad_scale,
    const OptionalTensor& found_inf) {
  const bool direct =
      takes(self, gradients, grad_scale, found_inf) &&
      are_states(self, first) && are_states(self, second) &&
      first[0].scalar_type() == second[0].scalar_type() &&
      are_steps(self, steps) &&
      (!amsgrad || (are_states(self, maximum) &&
                    maximum[0].scalar_type() == first[0].scalar_type()));
  if (!direct) {
    OnHost<Op>::run(
        self,
        gradients,
        first,
        second,
        maximum,
        steps,
        learning_rate,
        beta1,
        beta2,
        weight_decay,
        eps,
        amsgrad,
        maximize,
        grad_scale,
        found_inf);
    return;
  }
  AdamOptions options;
  options.learning_rate = learning_rate;
  options.beta1 = beta1;
  options.beta2 = beta2;
  options.eps = eps;
  options.weight_decay = weight_decay;
  options.decoupled_decay = decoupled;
  options.maximize = maximize;
  struct Work {
    std::vector<OptimizedArray> arrays;
    std::vector<const float*> steps;
  };
  auto work = std::make_shared<Work>();
  for (size_t i = 0; i < self.size(); ++i) {
    work->arrays.push_back(
        {self[i].numel(),
         self[i].scalar_type(),
         first[i].scalar_type(),
         output(self[i]),
         input(gradients[i]),
         output(first[i]),
         output(second[i]),
         amsgrad ? output(maximum[i]) : nullptr,
         0.0f});
    work->steps.push_back(static_cast<const float*>(input(steps[i])));
  }
  launch_on(record_of<Op>(), self[0], [work, options] {
    auto& arrays = work->arrays;
    for (size_t i = 0; i < arrays.size(); ++i) {
      arrays[i].step = *work->steps[i];
    }
    host_kernels::adam_step(
        arrays.data(), static_cast<int64_t>(arrays.size()), options);
  });
}

void sgd(
    TensorList self,
    TensorList gradients,
    TensorList momenta,
    double weight_decay,
    double momentum,
    double learning_rate,
    double dampening,
    bool nesterov,
    bool maximize,
    bool is_first_step,
    const OptionalTensor& grad_scale,
    const OptionalTensor& found_inf) {
  using Op = at::_ops::_fused_sgd_;
  const bool direct =
      takes(self, gradients, grad_scale, found_inf) &&
      (momenta.empty() ? momentum == 0.0 : are_states(self, momenta));
  if (!direct) {
    OnHost<Op>::run(
        self,
        gradients,
        momenta,
        weight_decay,
        momentum,
        learning_rate,
        dampening,
        nesterov,
        maximize,
        is_first_step,
        grad_scale,
        found_inf);
    return;
  }
  SgdOptions options;
  options.learning_rate = learning_rate;
  options.momentum = momentum;
  options.dampening = dampening;
  options.weight_decay = weight_decay;
  options.nesterov = nesterov;
  options.maximize = maximize;
  options.first_step = is_first_step;
  auto arrays = std::make_shared<std::vector<OptimizedArray>>();
  for (size_t i = 0; i < self.size(); ++i) {
    const bool has_momentum = !momenta.empty();
    arrays->push_back(
        {self[i].numel(),
         self[i].scalar_type(),
         has_momentum ? momenta[i].scalar_type() : self[i].scalar_type(),
         output(self[i]),
         input(gradients[i]),
         has_momentum ? output(momenta[i]) : nullptr,
         nullptr,
         nullptr,
         0.0f});
  }
  launch_on(record_of<Op>(), self[0], [arrays, options] {
    host_kernels::sgd_step(
        arrays->data(), static_cast<int64_t>(arrays->size()), options);
  });
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  using namespace at::_ops;
  m.impl("_fused_adam_", TORCH_FN((adam<_fused_adam_, false>)));
  m.impl("_fused_adamw_", TORCH_FN((adam<_fused_adamw_, true>)));
  m.impl("_fused_sgd_", TORCH_FN(sgd));
}

}  // namespace
}  // namespace neuron

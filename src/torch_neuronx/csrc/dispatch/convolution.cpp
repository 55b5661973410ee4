// Convolutions: the CPU's own choice of algorithm, on aliases.
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <torch/library.h>

#include "dispatch/boxed.h"

namespace neuron {
namespace {

// Out-of-tree devices end here when they come through _convolution.
at::Tensor convolution_overrideable(
    const at::Tensor& input,
    const at::Tensor& weight,
    const std::optional<at::Tensor>& bias,
    c10::SymIntArrayRef stride,
    c10::SymIntArrayRef padding,
    c10::SymIntArrayRef dilation,
    bool transposed,
    c10::SymIntArrayRef output_padding,
    c10::SymInt groups) {
  return at::convolution_symint(
      input,
      weight,
      bias,
      stride,
      padding,
      dilation,
      transposed,
      output_padding,
      std::move(groups));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor>
convolution_backward_overrideable(
    const at::Tensor& grad_output,
    const at::Tensor& input,
    const at::Tensor& weight,
    c10::SymIntArrayRef stride,
    c10::SymIntArrayRef padding,
    c10::SymIntArrayRef dilation,
    bool transposed,
    c10::SymIntArrayRef output_padding,
    c10::SymInt groups,
    std::array<bool, 3> output_mask) {
  const std::vector<c10::SymInt> bias_sizes{grad_output.sym_size(1)};
  return at::convolution_backward_symint(
      grad_output,
      input,
      weight,
      c10::SymIntArrayRef(bias_sizes),
      stride,
      padding,
      dilation,
      transposed,
      output_padding,
      std::move(groups),
      output_mask);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  // These have composite kernels that would choose "overrideable" by device.
  m.impl(
      "convolution", torch::CppFunction::makeFromBoxedFunction<&run_boxed>());
  m.impl(
      "convolution_backward",
      torch::CppFunction::makeFromBoxedFunction<&run_boxed>());
  m.impl("convolution_overrideable", TORCH_FN(convolution_overrideable));
  m.impl(
      "convolution_backward_overrideable",
      TORCH_FN(convolution_backward_overrideable));
}

} // namespace
} // namespace neuron

// Convolutions: in fp32 the CPU's own choice of algorithm; in 16-bit formats
// that this host's CPU has no instructions for, our kernels.
#include "dispatch/direct.h"

#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/convolution_backward_ops.h>
#include <ATen/ops/convolution_ops.h>
#include <ATen/ops/sum.h>
#include <torch/library.h>

#include "host_kernels/convolution.h"
#include "host_kernels/isa.h"

namespace neuron {
namespace {

using at::Tensor;
using host_kernels::ArrayIn;
using host_kernels::ConvolutionShape;
using host_kernels::ImagesIn;
using host_kernels::ImagesOut;
using host_kernels::Spatial;
using Gradients = std::tuple<Tensor, Tensor, Tensor>;

struct Geometry {
  at::IntArrayRef stride;
  at::IntArrayRef padding;
  at::IntArrayRef dilation;
  bool transposed;
  at::IntArrayRef output_padding;
  int64_t groups;
};

bool is_slow_on_cpu(at::ScalarType dtype) {
  return dtype == at::kHalf ||
         (dtype == at::kBFloat16 &&
          host_kernels::host_isa() < host_kernels::Isa::avx512_bf16);
}

bool takes(const Tensor& tensor, at::ScalarType dtype, int64_t dims) {
  return is_direct(tensor) && tensor.scalar_type() == dtype &&
         tensor.dim() == dims && tensor.numel() > 0;
}

bool is_own(const Tensor& images, const Tensor& weight, const Geometry& g) {
  const auto dims = images.dim();
  const auto spatial = static_cast<size_t>(dims - 2);
  return dims >= 3 && dims <= 5 && is_slow_on_cpu(images.scalar_type()) &&
         takes(images, images.scalar_type(), dims) &&
         takes(weight, images.scalar_type(), dims) &&
         same_device(images, weight) && g.stride.size() == spatial &&
         g.padding.size() == spatial && g.dilation.size() == spatial &&
         g.groups > 0 &&
         images.size(1) ==
             (g.transposed ? weight.size(0) : weight.size(1) * g.groups) &&
         weight.size(0) % g.groups == 0;
}

// The last dims of a list, right-aligned in three.
void place(Spatial& to, at::IntArrayRef from) {
  std::copy(from.begin(), from.end(), to.end() - from.size());
}

// Sizes of the result; empty when there is none.
std::vector<int64_t> result_sizes(
    const Tensor& images, const Tensor& weight, const Geometry& g) {
  std::vector<int64_t> sizes{
      images.size(0),
      g.transposed ? weight.size(1) * g.groups : weight.size(0)};
  for (int64_t d = 0; d + 2 < images.dim(); ++d) {
    const auto i = static_cast<size_t>(d);
    const auto reach = g.dilation[i] * (weight.size(d + 2) - 1) + 1;
    const auto size = images.size(d + 2);
    const auto out = g.transposed
                         ? (size - 1) * g.stride[i] - 2 * g.padding[i] + reach +
                               g.output_padding[i]
                         : (size + 2 * g.padding[i] - reach) / g.stride[i] + 1;
    if (out <= 0 || (!g.transposed && size + 2 * g.padding[i] < reach)) {
      return {};
    }
    sizes.push_back(out);
  }
  return sizes;
}

// Of the convolution from `wide` images to `narrow` ones; a transposed
// convolution goes the other way.
ConvolutionShape shape_of(
    const Tensor& wide,
    const Tensor& narrow,
    const Tensor& weight,
    const Geometry& g) {
  ConvolutionShape shape;
  shape.batch = wide.size(0);
  shape.groups = g.groups;
  shape.in_channels = wide.size(1);
  shape.out_channels = narrow.size(1);
  place(shape.input, wide.sizes().slice(2));
  place(shape.output, narrow.sizes().slice(2));
  place(shape.kernel, weight.sizes().slice(2));
  place(shape.stride, g.stride);
  place(shape.padding, g.padding);
  place(shape.dilation, g.dilation);
  return shape;
}

template <class Images>
Images images_of(const Tensor& tensor, decltype(Images::data) data) {
  Images images;
  images.data = data;
  images.dtype = tensor.scalar_type();
  images.batch_stride = tensor.stride(0);
  images.channel_stride = tensor.stride(1);
  return images;
}

ImagesIn in(const Tensor& tensor) {
  return images_of<ImagesIn>(tensor, input(tensor));
}

ImagesOut out_of(const Tensor& tensor) {
  return images_of<ImagesOut>(tensor, output(tensor));
}

ArrayIn array_of(const Tensor& tensor) {
  ArrayIn array;
  if (tensor.defined()) {
    array.data = input(tensor);
    array.dtype = tensor.scalar_type();
  }
  return array;
}

Tensor convolution(
    const Tensor& images,
    const Tensor& weight,
    const std::optional<Tensor>& bias,
    c10::SymIntArrayRef stride,
    c10::SymIntArrayRef padding,
    c10::SymIntArrayRef dilation,
    bool transposed,
    c10::SymIntArrayRef output_padding,
    c10::SymInt groups) {
  const Geometry g{
      C10_AS_INTARRAYREF_SLOW(stride),
      C10_AS_INTARRAYREF_SLOW(padding),
      C10_AS_INTARRAYREF_SLOW(dilation),
      transposed,
      C10_AS_INTARRAYREF_SLOW(output_padding),
      groups.expect_int()};
  const auto added = bias.value_or(Tensor());
  const bool bias_taken =
      !added.defined() || takes(added, images.scalar_type(), 1);
  std::vector<int64_t> sizes;
  if (bias_taken && is_own(images, weight, g)) {
    sizes = result_sizes(images, weight, g);
  }
  if (sizes.empty()) {
    return OnHost<at::_ops::convolution>::run(
        images,
        weight,
        bias,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        std::move(groups));
  }
  auto result = empty(sizes, images.scalar_type(), images.device().index());
  const auto shape = transposed ? shape_of(result, images, weight, g)
                                : shape_of(images, result, weight, g);
  launch_on(
      record_of<at::_ops::convolution>(),
      images,
      [shape,
       transposed,
       x = in(images),
       w = array_of(weight),
       b = array_of(added),
       y = out_of(result)] {
        if (transposed) {
          host_kernels::convolution_input_gradient(shape, x, w, b, y);
        } else {
          host_kernels::convolution_forward(shape, x, w, b, y);
        }
      });
  return result;
}

Gradients convolution_backward(
    const Tensor& grad_output,
    const Tensor& images,
    const Tensor& weight,
    at::OptionalSymIntArrayRef bias_sizes,
    c10::SymIntArrayRef stride,
    c10::SymIntArrayRef padding,
    c10::SymIntArrayRef dilation,
    bool transposed,
    c10::SymIntArrayRef output_padding,
    c10::SymInt groups,
    std::array<bool, 3> mask) {
  const Geometry g{
      C10_AS_INTARRAYREF_SLOW(stride),
      C10_AS_INTARRAYREF_SLOW(padding),
      C10_AS_INTARRAYREF_SLOW(dilation),
      transposed,
      C10_AS_INTARRAYREF_SLOW(output_padding),
      groups.expect_int()};
  if (!is_own(images, weight, g) ||
      grad_output.scalar_type() != images.scalar_type() ||
      grad_output.dim() != images.dim() || grad_output.numel() == 0 ||
      !is_dense(grad_output) || !same_device(grad_output, images)) {
    return OnHost<at::_ops::convolution_backward>::run(
        grad_output,
        images,
        weight,
        bias_sizes,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        std::move(groups),
        mask);
  }
  const auto grad = grad_output.contiguous();
  const auto shape = transposed ? shape_of(grad, images, weight, g)
                                : shape_of(images, grad, weight, g);
  const auto& record = record_of<at::_ops::convolution_backward>();
  Gradients result;
  auto& [grad_images, grad_weight, grad_bias] = result;
  if (mask[0]) {
    grad_images = empty_as(images);
    launch_on(
        record,
        images,
        [shape,
         transposed,
         dy = in(grad),
         w = array_of(weight),
         dx = out_of(grad_images)] {
          if (transposed) {
            host_kernels::convolution_forward(shape, dy, w, {}, dx);
          } else {
            host_kernels::convolution_input_gradient(shape, dy, w, {}, dx);
          }
        });
  }
  if (mask[1]) {
    grad_weight = empty_as(weight);
    launch_on(
        record,
        images,
        [shape,
         wide = in(transposed ? grad : images),
         narrow = in(transposed ? images : grad),
         dw = output(grad_weight),
         dtype = weight.scalar_type()] {
          host_kernels::convolution_weight_gradient(
              shape, wide, narrow, dw, dtype);
        });
  }
  if (mask[2]) {
    std::vector<int64_t> all_but_channels{0};
    for (int64_t d = 2; d < grad.dim(); ++d) {
      all_but_channels.push_back(d);
    }
    grad_bias = at::sum(grad, all_but_channels);
  }
  return result;
}

// Out-of-tree devices end here when they come through _convolution.
Tensor convolution_overrideable(
    const Tensor& images,
    const Tensor& weight,
    const std::optional<Tensor>& bias,
    c10::SymIntArrayRef stride,
    c10::SymIntArrayRef padding,
    c10::SymIntArrayRef dilation,
    bool transposed,
    c10::SymIntArrayRef output_padding,
    c10::SymInt groups) {
  return at::convolution_symint(
      images,
      weight,
      bias,
      stride,
      padding,
      dilation,
      transposed,
      output_padding,
      std::move(groups));
}

Gradients convolution_backward_overrideable(
    const Tensor& grad_output,
    const Tensor& images,
    const Tensor& weight,
    c10::SymIntArrayRef stride,
    c10::SymIntArrayRef padding,
    c10::SymIntArrayRef dilation,
    bool transposed,
    c10::SymIntArrayRef output_padding,
    c10::SymInt groups,
    std::array<bool, 3> mask) {
  const std::vector<c10::SymInt> bias_sizes{grad_output.sym_size(1)};
  return at::convolution_backward_symint(
      grad_output,
      images,
      weight,
      c10::SymIntArrayRef(bias_sizes),
      stride,
      padding,
      dilation,
      transposed,
      output_padding,
      std::move(groups),
      mask);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  // These have composite kernels that would choose "overrideable" by device.
  m.impl("convolution", TORCH_FN(convolution));
  m.impl("convolution_backward", TORCH_FN(convolution_backward));
  m.impl("convolution_overrideable", TORCH_FN(convolution_overrideable));
  m.impl(
      "convolution_backward_overrideable",
      TORCH_FN(convolution_backward_overrideable));
}

}  // namespace
}  // namespace neuron

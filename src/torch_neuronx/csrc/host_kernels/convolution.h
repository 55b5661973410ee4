// Convolutions of 1 to 3 spatial dimensions and their gradients as products
// of unfolded tiles. Transposed convolution is the input gradient.
#pragma once

#include <c10/core/ScalarType.h>

#include <array>
#include <cstdint>

namespace neuron::host_kernels {

using Spatial = std::array<int64_t, 3>;

// Fewer than three spatial dimensions: leading ones of size 1.
struct ConvolutionShape {
  int64_t batch = 1;
  int64_t groups = 1;
  int64_t in_channels = 1;
  int64_t out_channels = 1;
  Spatial input = {1, 1, 1};
  Spatial output = {1, 1, 1};
  Spatial kernel = {1, 1, 1};
  Spatial stride = {1, 1, 1};
  Spatial padding = {0, 0, 0};
  Spatial dilation = {1, 1, 1};
};

// [batch, channels, spatial...]; the spatial dimensions are one run of
// positions, position_stride elements apart (1, or the number of channels when
// channels come last).
struct ImagesIn {
  const void* data = nullptr;
  c10::ScalarType dtype = c10::ScalarType::Float;
  int64_t batch_stride = 0;
  int64_t channel_stride = 0;
  int64_t position_stride = 1;
};

struct ImagesOut {
  void* data = nullptr;
  c10::ScalarType dtype = c10::ScalarType::Float;
  int64_t batch_stride = 0;
  int64_t channel_stride = 0;
  int64_t position_stride = 1;
};

// A contiguous array: weights are [out_channels, in_channels / groups,
// kernel...], a bias is [channels].
struct ArrayIn {
  const void* data = nullptr;
  c10::ScalarType dtype = c10::ScalarType::Float;
};

// Operands and outputs as for gemm(); fp32 sums, one rounding. bias may be
// null.
void convolution_forward(
    const ConvolutionShape& shape,
    const ImagesIn& input,
    const ArrayIn& weight,
    const ArrayIn& bias,
    const ImagesOut& output);

// `bias` is per input channel, for transposed convolution; may be null.
void convolution_input_gradient(
    const ConvolutionShape& shape,
    const ImagesIn& output_gradient,
    const ArrayIn& weight,
    const ArrayIn& bias,
    const ImagesOut& input_gradient);

// weight_gradient is contiguous like a weight, of dtype weight_dtype.
void convolution_weight_gradient(
    const ConvolutionShape& shape,
    const ImagesIn& input,
    const ImagesIn& output_gradient,
    void* weight_gradient,
    c10::ScalarType weight_dtype);

}  // namespace neuron::host_kernels

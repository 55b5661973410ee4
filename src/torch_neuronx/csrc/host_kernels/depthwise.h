// Convolutions in which every channel is a group of its own. Not for other
// folders: convolution.h chooses them.
#pragma once

#include "host_kernels/convolution.h"

namespace neuron::host_kernels {

inline bool is_depthwise(const ConvolutionShape& shape) {
  return shape.groups > 1 && shape.in_channels == shape.groups &&
         shape.out_channels == shape.groups;
}

// As the functions of convolution.h without this prefix.
void depthwise_forward(
    const ConvolutionShape& shape,
    const ImagesIn& input,
    const ArrayIn& weight,
    const ArrayIn& bias,
    const ImagesOut& output);

void depthwise_input_gradient(
    const ConvolutionShape& shape,
    const ImagesIn& output_gradient,
    const ArrayIn& weight,
    const ArrayIn& bias,
    const ImagesOut& input_gradient);

void depthwise_weight_gradient(
    const ConvolutionShape& shape,
    const ImagesIn& input,
    const ImagesIn& output_gradient,
    void* weight_gradient,
    c10::ScalarType weight_dtype);

}  // namespace neuron::host_kernels

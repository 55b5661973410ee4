// Unfolding of images into the columns that a convolution multiplies, and the
// reverse. Not for other folders.
#pragma once

#include "host_kernels/convolution.h"

namespace neuron::host_kernels {

inline int64_t volume(const Spatial& size) {
  return size[0] * size[1] * size[2];
}

// Row (channel, tap) and output positions [begin, begin + count) of one image.
struct UnfoldRange {
  int64_t first_row;  // channel * taps + tap, channels counted from `image`
  int64_t rows;
  int64_t begin;
  int64_t count;
};

// columns[row][position] = the input value that tap sees at that position, or
// zero in the padding. `image` points to the first channel of a group; columns
// have the element size of dtype and `stride` elements per row.
void unfold(
    const ConvolutionShape& shape,
    const void* image,
    c10::ScalarType dtype,
    int64_t channel_stride,
    int64_t position_stride,
    const UnfoldRange& range,
    void* columns,
    int64_t stride);

// Adds columns back to the input positions that they came from; image is fp32
// [channels][input positions], and first_row must be a whole channel.
void fold_add(
    const ConvolutionShape& shape,
    const float* columns,
    int64_t stride,
    const UnfoldRange& range,
    float* image);

}  // namespace neuron::host_kernels

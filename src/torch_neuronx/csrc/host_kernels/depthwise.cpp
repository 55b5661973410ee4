#include "host_kernels/depthwise.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "host_kernels/gemm_paths.h"
#include "host_kernels/kernel_table.h"
#include "host_kernels/rounding.h"
#include "host_kernels/scratch.h"
#include "host_kernels/unfold.h"

namespace neuron::host_kernels {
namespace {

constexpr int64_t kElementsPerThread = 1 << 14;

struct PlaneTag;
struct LineTag;

// One channel of one image as fp32 with its padding. Columns x, x + phases,
// x + 2 * phases ... lie side by side, so that a strided convolution reads
// whole vectors.
struct Plane {
  Spatial size;
  int64_t phases;
  int64_t phase_stride;
  float* data = nullptr;

  Plane(const Spatial& size, int64_t phases)
      : size(size),
        phases(phases),
        phase_stride(round_up(size[2] / phases + 1, 16) + kTapMargin) {}

  int64_t row_stride() const { return phases * phase_stride; }
  int64_t row(int64_t z, int64_t y) const {
    return (z * size[1] + y) * row_stride();
  }
  int64_t elements() const { return size[0] * row(1, 0) + kTapMargin; }
};

// Places value (z, y, x) of the channel at step * position + offset.
void fill_plane(
    const Plane& plane,
    const ImagesIn& images,
    int64_t batch,
    int64_t channel,
    const Spatial& source,
    const Spatial& step,
    const Spatial& offset) {
  std::fill_n(plane.data, plane.elements(), 0.0f);
  const auto line_size = round_up(source[2], 16) + 16;
  auto* line = scratch<LineTag>(line_size);
  for (int64_t row = 0; row < source[0] * source[1]; ++row) {
    const auto z = row / source[1] * step[0] + offset[0];
    const auto y = row % source[1] * step[1] + offset[1];
    if (z < 0 || z >= plane.size[0] || y < 0 || y >= plane.size[1]) {
      continue;
    }
    const auto at = batch * images.batch_stride +
                    channel * images.channel_stride +
                    row * source[2] * images.position_stride;
    kernel_table().gemm.fp32.copy_rows(
        {advance(images.data, images.dtype, at),
         images.dtype,
         0,
         images.position_stride,
         1,
         source[2]},
        line,
        line_size);
    auto* to = plane.data + plane.row(z, y);
    for (int64_t i = 0; i < source[2]; ++i) {
      const auto x = i * step[2] + offset[2];
      if (x >= 0 && x < plane.size[2]) {
        to[x % plane.phases * plane.phase_stride + x / plane.phases] = line[i];
      }
    }
  }
}

// Offsets of the taps from an output row's first value in the plane.
std::vector<int64_t> tap_offsets(
    const Plane& plane, const ConvolutionShape& shape) {
  std::vector<int64_t> offsets;
  for (int64_t z = 0; z < shape.kernel[0]; ++z) {
    for (int64_t y = 0; y < shape.kernel[1]; ++y) {
      for (int64_t k = 0; k < shape.kernel[2]; ++k) {
        const auto x = k * shape.dilation[2];
        offsets.push_back(
            plane.row(z * shape.dilation[0], y * shape.dilation[1]) +
            x % plane.phases * plane.phase_stride + x / plane.phases);
      }
    }
  }
  return offsets;
}

Spatial padded(const Spatial& size, const Spatial& padding) {
  return {
      size[0] + 2 * padding[0],
      size[1] + 2 * padding[1],
      size[2] + 2 * padding[2]};
}

std::vector<float> floats_of(const ArrayIn& array, int64_t count) {
  std::vector<float> values(round_up(count, 16) + 16);
  kernel_table().gemm.fp32.copy_rows(
      {array.data, array.dtype, count, 1, 1, count},
      values.data(),
      static_cast<int64_t>(values.size()));
  return values;
}

// function(batch, channel) on all threads.
template <class Function>
void for_channels(
    const ConvolutionShape& shape, int64_t batches, Function function) {
  const auto work =
      std::max<int64_t>(1, volume(shape.output) * volume(shape.kernel) / 8);
  at::parallel_for(
      0,
      batches * shape.groups,
      std::max<int64_t>(1, kElementsPerThread / work),
      [&](int64_t begin, int64_t end) {
        for (auto i = begin; i < end; ++i) {
          function(i / shape.groups, i % shape.groups);
        }
      });
}

// Correlates every row of `size` outputs, `stride` rows apart, and writes them
// as channel of images.
void correlate_plane(
    const Plane& plane,
    const std::vector<int64_t>& offsets,
    const float* weights,
    const Spatial& size,
    const Spatial& stride,
    const ImagesOut& images,
    int64_t batch,
    int64_t channel,
    const ArrayIn& bias) {
  const auto& table = kernel_table();
  auto* sums = scratch<LineTag>(size[2] + kTapMargin);
  for (int64_t row = 0; row < size[0] * size[1]; ++row) {
    const auto z = row / size[1] * stride[0];
    const auto y = row % size[1] * stride[1];
    const auto taps = static_cast<int64_t>(offsets.size());
    table.depthwise.correlate(
        {plane.data + plane.row(z, y), offsets.data(), taps, size[2]},
        weights,
        sums);
    const auto at = batch * images.batch_stride +
                    channel * images.channel_stride +
                    row * size[2] * images.position_stride;
    const Epilogue epilogue{
        const_cast<void*>(advance(images.data, images.dtype, at)),
        images.dtype,
        0,
        images.position_stride,
        advance(bias.data, bias.dtype, channel),
        bias.dtype,
        0,
        0,
        1.0f,
        bias.data == nullptr ? 0.0f : 1.0f};
    table.gemm.finish({sums, size[2], 0, 0, 1, size[2]}, epilogue);
  }
}

}  // namespace

void depthwise_forward(
    const ConvolutionShape& shape,
    const ImagesIn& input,
    const ArrayIn& weight,
    const ArrayIn& bias,
    const ImagesOut& output) {
  const auto taps = volume(shape.kernel);
  const auto weights = floats_of(weight, shape.groups * taps);
  Plane layout(padded(shape.input, shape.padding), shape.stride[2]);
  const auto offsets = tap_offsets(layout, shape);
  for_channels(shape, shape.batch, [&](int64_t batch, int64_t channel) {
    auto plane = layout;
    plane.data = scratch<PlaneTag>(plane.elements());
    fill_plane(
        plane, input, batch, channel, shape.input, {1, 1, 1}, shape.padding);
    correlate_plane(
        plane,
        offsets,
        weights.data() + channel * taps,
        shape.output,
        shape.stride,
        output,
        batch,
        channel,
        bias);
  });
}

// The gradients, spread out by the stride, against the kernel backwards.
void depthwise_input_gradient(
    const ConvolutionShape& shape,
    const ImagesIn& output_gradient,
    const ArrayIn& weight,
    const ArrayIn& bias,
    const ImagesOut& input_gradient) {
  const auto taps = volume(shape.kernel);
  auto weights = floats_of(weight, shape.groups * taps);
  for (int64_t g = 0; g < shape.groups; ++g) {
    std::reverse(&weights[g * taps], &weights[g * taps] + taps);
  }
  Spatial reach;
  Spatial offset;
  for (int d = 0; d < 3; ++d) {
    const auto span = (shape.kernel[d] - 1) * shape.dilation[d];
    reach[d] = shape.input[d] + span;
    offset[d] = span - shape.padding[d];
  }
  Plane layout(reach, 1);
  const auto offsets = tap_offsets(layout, shape);
  for_channels(shape, shape.batch, [&](int64_t batch, int64_t channel) {
    auto plane = layout;
    plane.data = scratch<PlaneTag>(plane.elements());
    fill_plane(
        plane,
        output_gradient,
        batch,
        channel,
        shape.output,
        shape.stride,
        offset);
    correlate_plane(
        plane,
        offsets,
        weights.data() + channel * taps,
        shape.input,
        {1, 1, 1},
        input_gradient,
        batch,
        channel,
        bias);
  });
}

void depthwise_weight_gradient(
    const ConvolutionShape& shape,
    const ImagesIn& input,
    const ImagesIn& output_gradient,
    void* weight_gradient,
    c10::ScalarType weight_dtype) {
  const auto& table = kernel_table();
  const auto taps = volume(shape.kernel);
  Plane in_layout(padded(shape.input, shape.padding), shape.stride[2]);
  Plane out_layout(shape.output, 1);
  const auto offsets = tap_offsets(in_layout, shape);
  const auto sums_size = taps * kTapSums;
  for_channels(shape, 1, [&](int64_t, int64_t channel) {
    auto in = in_layout;
    auto out = out_layout;
    in.data =
        scratch<PlaneTag>(in.elements() + out.elements() + sums_size + taps);
    out.data = in.data + in.elements();
    auto* sums = out.data + out.elements();
    std::fill_n(sums, sums_size, 0.0f);
    for (int64_t batch = 0; batch < shape.batch; ++batch) {
      fill_plane(
          in, input, batch, channel, shape.input, {1, 1, 1}, shape.padding);
      fill_plane(
          out,
          output_gradient,
          batch,
          channel,
          shape.output,
          {1, 1, 1},
          {0, 0, 0});
      for (int64_t row = 0; row < shape.output[0] * shape.output[1]; ++row) {
        const auto z = row / shape.output[1];
        const auto y = row % shape.output[1];
        table.depthwise.correlate_gradient(
            {in.data + in.row(z * shape.stride[0], y * shape.stride[1]),
             offsets.data(),
             taps,
             shape.output[2]},
            out.data + out.row(z, y),
            sums);
      }
    }
    auto* totals = sums + sums_size;
    for (int64_t t = 0; t < taps; ++t) {
      totals[t] = 0.0f;
      for (int64_t lane = 0; lane < kTapSums; ++lane) {
        totals[t] += sums[t * kTapSums + lane];
      }
    }
    const auto size = static_cast<int64_t>(c10::elementSize(weight_dtype));
    table.depthwise.round(
        totals,
        weight_dtype,
        static_cast<char*>(weight_gradient) + channel * taps * size,
        taps);
  });
}

}  // namespace neuron::host_kernels

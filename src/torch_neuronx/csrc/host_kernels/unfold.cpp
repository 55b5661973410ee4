#include "host_kernels/unfold.h"

#include <algorithm>
#include <cstring>

namespace neuron::host_kernels {
namespace {

// A run of output positions along the last dimension.
struct Line {
  int64_t column;  // of the first position, in the range
  int64_t count;
  // Positions [first, last) of the line lie inside the input, the first of
  // them at `input`; later ones step by the stride.
  int64_t first;
  int64_t last;
  int64_t input;
};

// Positions o in [0, size) with 0 <= o * stride + offset < limit.
void clip(
    int64_t offset,
    int64_t stride,
    int64_t limit,
    int64_t& first,
    int64_t& last) {
  if (offset < 0) {
    first = std::max(first, (-offset + stride - 1) / stride);
  }
  last = std::min(
      last, offset >= limit ? int64_t(0) : (limit - 1 - offset) / stride + 1);
  last = std::max(last, first);
}

template <class Function>
void for_each_line(
    const ConvolutionShape& shape,
    int64_t tap,
    const UnfoldRange& range,
    Function function) {
  Spatial offset;
  auto left = tap;
  for (int d = 2; d >= 0; --d) {
    offset[d] = left % shape.kernel[d] * shape.dilation[d] - shape.padding[d];
    left /= shape.kernel[d];
  }
  const auto width = shape.output[2];
  for (int64_t at = 0; at < range.count;) {
    const auto position = range.begin + at;
    const auto x = position % width;
    const auto y = position / width % shape.output[1];
    const auto z = position / width / shape.output[1];
    Line line{at, std::min(width - x, range.count - at), 0, 0, 0};
    const auto input_y = y * shape.stride[1] + offset[1];
    const auto input_z = z * shape.stride[0] + offset[0];
    if (input_y >= 0 && input_y < shape.input[1] && input_z >= 0 &&
        input_z < shape.input[0]) {
      int64_t first = x;
      int64_t last = x + line.count;
      clip(offset[2], shape.stride[2], shape.input[2], first, last);
      line.first = first - x;
      line.last = std::max(last - x, line.first);
      line.input = (input_z * shape.input[1] + input_y) * shape.input[2] +
                   first * shape.stride[2] + offset[2];
    }
    if (line.first >= line.last) {
      line.first = line.last = 0;
    }
    function(line);
    at += line.count;
  }
}

template <class Word>
void unfold_words(
    const ConvolutionShape& shape,
    const Word* image,
    int64_t channel_stride,
    int64_t position_stride,
    const UnfoldRange& range,
    Word* columns,
    int64_t stride) {
  const auto taps = volume(shape.kernel);
  const auto step = shape.stride[2] * position_stride;
  for (int64_t r = 0; r < range.rows; ++r, columns += stride) {
    const auto row = range.first_row + r;
    const auto* channel = image + row / taps * channel_stride;
    for_each_line(shape, row % taps, range, [&](const Line& line) {
      auto* out = columns + line.column;
      std::fill(out, out + line.first, Word(0));
      const auto* in = channel + line.input * position_stride;
      if (step == 1 && line.last > line.first) {
        std::memcpy(
            out + line.first, in, (line.last - line.first) * sizeof(Word));
      } else {
        for (auto i = line.first; i < line.last; ++i, in += step) {
          out[i] = *in;
        }
      }
      std::fill(out + line.last, out + line.count, Word(0));
    });
  }
}

}  // namespace

void unfold(
    const ConvolutionShape& shape,
    const void* image,
    c10::ScalarType dtype,
    int64_t channel_stride,
    int64_t position_stride,
    const UnfoldRange& range,
    void* columns,
    int64_t stride) {
  const auto run = [&]<class Word>(Word*) {
    unfold_words(
        shape,
        static_cast<const Word*>(image),
        channel_stride,
        position_stride,
        range,
        static_cast<Word*>(columns),
        stride);
  };
  switch (c10::elementSize(dtype)) {
    case 1:
      return run(static_cast<uint8_t*>(nullptr));
    case 2:
      return run(static_cast<uint16_t*>(nullptr));
    default:
      return run(static_cast<uint32_t*>(nullptr));
  }
}

void fold_add(
    const ConvolutionShape& shape,
    const float* columns,
    int64_t stride,
    const UnfoldRange& range,
    float* image) {
  const auto taps = volume(shape.kernel);
  const auto step = shape.stride[2];
  for (int64_t r = 0; r < range.rows; ++r, columns += stride) {
    auto* channel = image + r / taps * volume(shape.input);
    for_each_line(shape, r % taps, range, [&](const Line& line) {
      const auto* from = columns + line.column + line.first;
      auto* to = channel + line.input;
      const auto count = line.last - line.first;
      if (step == 1) {
        for (int64_t i = 0; i < count; ++i) {
          to[i] += from[i];
        }
      } else {
        for (int64_t i = 0; i < count; ++i) {
          to[i * step] += from[i];
        }
      }
    });
  }
}

}  // namespace neuron::host_kernels

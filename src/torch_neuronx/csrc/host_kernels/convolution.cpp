#include "host_kernels/convolution.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>

#include "host_kernels/gemm.h"
#include "host_kernels/gemm_paths.h"
#include "host_kernels/kernel_table.h"
#include "host_kernels/scratch.h"
#include "host_kernels/unfold.h"

namespace neuron::host_kernels {
namespace {

// Elements of unfolded columns that are held at once.
constexpr int64_t kColumnElements = 1 << 19;
constexpr int64_t kFewestPositions = 64;
// fp32 input gradients that a task adds to.
constexpr int64_t kImageElements = 1 << 18;

struct ColumnTag;
struct ImageTag;
struct GradientTag;
struct WeightTag;

int64_t divide_up(int64_t x, int64_t step) { return (x + step - 1) / step; }

// Sizes of one group.
struct Group {
  int64_t in;
  int64_t out;
  int64_t taps;
  int64_t depth;  // in * taps
  int64_t positions;

  explicit Group(const ConvolutionShape& shape)
      : in(shape.in_channels / shape.groups),
        out(shape.out_channels / shape.groups),
        taps(volume(shape.kernel)),
        depth(in * taps),
        positions(volume(shape.output)) {}
};

// 1x1 with stride 1: the images are their own columns.
bool is_pointwise(const ConvolutionShape& shape) {
  return volume(shape.kernel) == 1 && shape.input == shape.output &&
         shape.stride == Spatial{1, 1, 1} && shape.padding == Spatial{0, 0, 0};
}

// Runs task(i) for all i: one thread each when there are enough of them,
// otherwise one after the other with all threads inside.
template <class Task>
void run_tasks(int64_t count, Task task) {
  const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  if (threads == 1 || count < threads) {
    for (int64_t i = 0; i < count; ++i) {
      task(i);
    }
    return;
  }
  std::atomic<int64_t> next{0};
  at::parallel_for(0, threads, 1, [&](int64_t, int64_t) {
    for (auto i = next++; i < count; i = next++) {
      task(i);
    }
  });
}

// unfold() on all threads that are free.
void unfold_all(
    const ConvolutionShape& shape,
    const ImagesIn& images,
    int64_t batch,
    int64_t first_channel,
    const UnfoldRange& range,
    void* columns,
    int64_t stride) {
  const auto size = static_cast<int64_t>(c10::elementSize(images.dtype));
  const auto* image = advance(
      images.data,
      images.dtype,
      batch * images.batch_stride + first_channel * images.channel_stride);
  const auto grain = std::max<int64_t>(1, (1 << 15) / range.count);
  at::parallel_for(0, range.rows, grain, [&](int64_t begin, int64_t end) {
    unfold(
        shape,
        image,
        images.dtype,
        images.channel_stride,
        images.position_stride,
        {range.first_row + begin, end - begin, range.begin, range.count},
        static_cast<char*>(columns) + begin * stride * size,
        stride);
  });
}

void* column_memory(c10::ScalarType dtype, int64_t count) {
  const auto bytes = count * static_cast<int64_t>(c10::elementSize(dtype));
  return scratch<ColumnTag>(divide_up(bytes, sizeof(float)));
}

int64_t positions_at_once(int64_t positions, int64_t depth) {
  const auto most = std::max(kFewestPositions, kColumnElements / depth);
  return divide_up(positions, divide_up(positions, most));
}

}  // namespace

void convolution_forward(
    const ConvolutionShape& shape,
    const ImagesIn& input,
    const ArrayIn& weight,
    const ArrayIn& bias,
    const ImagesOut& output) {
  const Group group(shape);
  GemmArgs product;
  product.m = group.out;
  product.k = group.depth;
  product.addend = {bias.data, bias.dtype, 0, 1, 0};
  product.beta = bias.data == nullptr ? 0.0f : 1.0f;
  const auto at_group = [&](GemmArgs& args, int64_t g) {
    const auto channel = g * group.out;
    args.a = {
        advance(weight.data, weight.dtype, channel * group.depth),
        weight.dtype,
        0,
        group.depth,
        1};
    args.addend.data = advance(bias.data, bias.dtype, channel);
  };
  const auto out_at = [&](int64_t b, int64_t g, int64_t position) {
    const auto offset = b * output.batch_stride +
                        g * group.out * output.channel_stride +
                        position * output.position_stride;
    return MatrixOut{
        const_cast<void*>(advance(output.data, output.dtype, offset)),
        output.dtype,
        output.batch_stride,
        output.channel_stride,
        output.position_stride};
  };
  if (is_pointwise(shape)) {
    for (int64_t g = 0; g < shape.groups; ++g) {
      auto args = product;
      at_group(args, g);
      args.batch = shape.batch;
      args.n = group.positions;
      args.b = {
          advance(input.data, input.dtype, g * group.in * input.channel_stride),
          input.dtype,
          input.batch_stride,
          input.channel_stride,
          input.position_stride};
      args.out = out_at(0, g, 0);
      gemm(args);
    }
    return;
  }
  const auto at_once = positions_at_once(group.positions, group.depth);
  const auto tiles = divide_up(group.positions, at_once);
  run_tasks(shape.batch * shape.groups * tiles, [&](int64_t task) {
    const auto b = task / tiles / shape.groups;
    const auto g = task / tiles % shape.groups;
    const auto begin = task % tiles * at_once;
    const auto count = std::min(at_once, group.positions - begin);
    auto* columns = column_memory(input.dtype, group.depth * count);
    unfold_all(
        shape,
        input,
        b,
        g * group.in,
        {0, group.depth, begin, count},
        columns,
        count);
    auto args = product;
    at_group(args, g);
    args.n = count;
    args.b = {columns, input.dtype, 0, count, 1};
    args.out = out_at(b, g, begin);
    gemm(args);
  });
}

void convolution_input_gradient(
    const ConvolutionShape& shape,
    const ImagesIn& output_gradient,
    const ArrayIn& weight,
    const ArrayIn& bias,
    const ImagesOut& input_gradient) {
  const Group group(shape);
  const auto input_size = volume(shape.input);
  // Whole channels of input per task, so that tasks add to their own memory.
  const auto channels = std::clamp<int64_t>(
      kImageElements / std::max<int64_t>(1, input_size), 1, group.in);
  const auto chunks = divide_up(group.in, channels);
  run_tasks(shape.batch * shape.groups * chunks, [&](int64_t task) {
    const auto b = task / chunks / shape.groups;
    const auto g = task / chunks % shape.groups;
    const auto first = task % chunks * channels;
    const auto count = std::min(channels, group.in - first);
    const auto rows = count * group.taps;
    auto* image = scratch<ImageTag>(count * input_size);
    std::fill_n(image, count * input_size, 0.0f);
    const auto at_once = positions_at_once(group.positions, rows);
    auto* columns = scratch<GradientTag>(rows * at_once);
    for (int64_t at = 0; at < group.positions; at += at_once) {
      const auto positions = std::min(at_once, group.positions - at);
      const auto weight_offset =
          (g * group.out * group.in + first) * group.taps;
      const auto gradient_offset =
          b * output_gradient.batch_stride +
          g * group.out * output_gradient.channel_stride +
          at * output_gradient.position_stride;
      GemmArgs args;
      args.m = rows;
      args.n = positions;
      args.k = group.out;
      args.a = {
          advance(weight.data, weight.dtype, weight_offset),
          weight.dtype,
          0,
          1,
          group.depth};
      args.b = {
          advance(output_gradient.data, output_gradient.dtype, gradient_offset),
          output_gradient.dtype,
          0,
          output_gradient.channel_stride,
          output_gradient.position_stride};
      args.out = {columns, c10::ScalarType::Float, 0, positions, 1};
      gemm(args);
      fold_add(shape, columns, positions, {0, rows, at, positions}, image);
    }
    const auto channel = g * group.in + first;
    const auto offset = b * input_gradient.batch_stride +
                        channel * input_gradient.channel_stride;
    Epilogue epilogue{
        const_cast<void*>(
            advance(input_gradient.data, input_gradient.dtype, offset)),
        input_gradient.dtype,
        input_gradient.channel_stride,
        input_gradient.position_stride,
        advance(bias.data, bias.dtype, channel),
        bias.dtype,
        1,
        0,
        1.0f,
        bias.data == nullptr ? 0.0f : 1.0f};
    kernel_table().gemm.finish(
        {image, input_size, 0, 0, count, input_size}, epilogue);
  });
}

void convolution_weight_gradient(
    const ConvolutionShape& shape,
    const ImagesIn& input,
    const ImagesIn& output_gradient,
    void* weight_gradient,
    c10::ScalarType weight_dtype) {
  const Group group(shape);
  const auto at_once = positions_at_once(group.positions, group.depth);
  const auto tiles = divide_up(group.positions, at_once);
  const bool pointwise = is_pointwise(shape);
  run_tasks(shape.groups, [&](int64_t g) {
    auto* sums = scratch<WeightTag>(group.out * group.depth);
    std::fill_n(sums, group.out * group.depth, 0.0f);
    for (int64_t task = 0; task < shape.batch * tiles; ++task) {
      const auto b = task / tiles;
      const auto begin = task % tiles * at_once;
      const auto count = std::min(at_once, group.positions - begin);
      GemmArgs args;
      args.m = group.out;
      args.n = group.depth;
      args.k = count;
      const auto gradient_offset =
          b * output_gradient.batch_stride +
          g * group.out * output_gradient.channel_stride +
          begin * output_gradient.position_stride;
      args.a = {
          advance(output_gradient.data, output_gradient.dtype, gradient_offset),
          output_gradient.dtype,
          0,
          output_gradient.channel_stride,
          output_gradient.position_stride};
      if (pointwise) {
        const auto offset = b * input.batch_stride +
                            g * group.in * input.channel_stride +
                            begin * input.position_stride;
        args.b = {
            advance(input.data, input.dtype, offset),
            input.dtype,
            0,
            input.position_stride,
            input.channel_stride};
      } else {
        auto* columns = column_memory(input.dtype, group.depth * count);
        unfold_all(
            shape,
            input,
            b,
            g * group.in,
            {0, group.depth, begin, count},
            columns,
            count);
        args.b = {columns, input.dtype, 0, 1, count};
      }
      args.out = {sums, c10::ScalarType::Float, 0, group.depth, 1};
      args.addend = {sums, c10::ScalarType::Float, 0, group.depth, 1};
      args.beta = 1.0f;
      gemm(args);
    }
    Epilogue epilogue{
        const_cast<void*>(advance(
            weight_gradient, weight_dtype, g * group.out * group.depth)),
        weight_dtype,
        group.depth,
        1};
    epilogue.alpha = 1.0f;
    kernel_table().gemm.finish(
        {sums, group.depth, 0, 0, group.out, group.depth}, epilogue);
  });
}

}  // namespace neuron::host_kernels

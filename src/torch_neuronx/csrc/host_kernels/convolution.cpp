#include "host_kernels/convolution.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "host_kernels/depthwise.h"
#include "host_kernels/gemm.h"
#include "host_kernels/gemm_paths.h"
#include "host_kernels/kernel_table.h"
#include "host_kernels/position_tiles.h"
#include "host_kernels/scratch.h"
#include "host_kernels/unfold.h"

namespace neuron::host_kernels {
namespace {

// fp32 input gradients that a task adds to.
constexpr int64_t kImageElements = 1 << 18;

struct ColumnTag;
struct ImageTag;
struct GradientTag;
struct WeightTag;
struct GatherTag;
struct OutputTag;

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

// The columns of a tile on all threads that are free, in thread memory.
const void* unfold_tile(
    const ConvolutionShape& shape,
    const ImagesIn& images,
    int64_t first_channel,
    int64_t rows,
    const PositionTile& tile) {
  const auto size = static_cast<int64_t>(c10::elementSize(images.dtype));
  auto* columns =
      scratch<ColumnTag>(divide_up(rows * tile.width() * size, sizeof(float)));
  const auto grain = std::max<int64_t>(1, (1 << 15) / tile.width());
  at::parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < tile.images; ++i) {
      unfold(
          shape,
          advance(
              images.data,
              images.dtype,
              (tile.batch + i) * images.batch_stride +
                  first_channel * images.channel_stride),
          images.dtype,
          images.channel_stride,
          images.position_stride,
          {begin, end - begin, tile.begin, tile.count},
          reinterpret_cast<char*>(columns) +
              (begin * tile.width() + i * tile.count) * size,
          tile.width());
    }
  });
  return columns;
}

// channels x positions of a tile: as they lie, or side by side if they are of
// several images.
MatrixIn tile_of(
    const ImagesIn& images,
    int64_t first_channel,
    int64_t channels,
    const Spatial& size,
    const PositionTile& tile) {
  const auto offset = tile.batch * images.batch_stride +
                      first_channel * images.channel_stride +
                      tile.begin * images.position_stride;
  if (tile.images == 1) {
    return {
        advance(images.data, images.dtype, offset),
        images.dtype,
        0,
        images.channel_stride,
        images.position_stride};
  }
  ConvolutionShape identity;
  identity.input = identity.output = size;
  const auto bytes = static_cast<int64_t>(c10::elementSize(images.dtype));
  auto* gathered = scratch<GatherTag>(
      divide_up(channels * tile.width() * bytes, sizeof(float)));
  for (int64_t i = 0; i < tile.images; ++i) {
    unfold(
        identity,
        advance(images.data, images.dtype, offset + i * images.batch_stride),
        images.dtype,
        images.channel_stride,
        images.position_stride,
        {0, channels, tile.begin, tile.count},
        reinterpret_cast<char*>(gathered) + i * tile.count * bytes,
        tile.width());
  }
  return {gathered, images.dtype, 0, tile.width(), 1};
}

Epilogue epilogue_to(
    const ImagesOut& images,
    int64_t batch,
    int64_t channel,
    int64_t position,
    const ArrayIn& bias) {
  const auto offset = batch * images.batch_stride +
                      channel * images.channel_stride +
                      position * images.position_stride;
  return {
      const_cast<void*>(advance(images.data, images.dtype, offset)),
      images.dtype,
      images.channel_stride,
      images.position_stride,
      advance(bias.data, bias.dtype, channel),
      bias.dtype,
      1,
      0,
      1.0f,
      bias.data == nullptr ? 0.0f : 1.0f};
}

}  // namespace

void convolution_forward(
    const ConvolutionShape& shape,
    const ImagesIn& input,
    const ArrayIn& weight,
    const ArrayIn& bias,
    const ImagesOut& output) {
  if (is_depthwise(shape)) {
    return depthwise_forward(shape, input, weight, bias, output);
  }
  const Group group(shape);
  const bool pointwise = is_pointwise(shape);
  const Tiling tiling(shape, group.positions, group.depth);
  const auto tiles = tiling.count();
  run_tasks(shape.groups * tiles, [&](int64_t task) {
    const auto g = task / tiles;
    const auto tile = tiling[task % tiles];
    const auto channel = g * group.out;
    GemmArgs args;
    args.m = group.out;
    args.n = tile.width();
    args.k = group.depth;
    args.a = {
        advance(weight.data, weight.dtype, channel * group.depth),
        weight.dtype,
        0,
        group.depth,
        1};
    args.b =
        pointwise
            ? tile_of(input, g * group.in, group.in, shape.input, tile)
            : MatrixIn{
                  unfold_tile(shape, input, g * group.in, group.depth, tile),
                  input.dtype,
                  0,
                  tile.width(),
                  1};
    if (tile.images == 1) {
      const auto to =
          epilogue_to(output, tile.batch, channel, tile.begin, bias);
      args.out = {
          to.out, to.out_dtype, 0, to.out_row_stride, to.out_column_stride};
      args.addend = {to.addend, to.addend_dtype, 0, 1, 0};
      args.beta = to.beta;
      gemm(args);
      return;
    }
    auto* sums = scratch<OutputTag>(group.out * tile.width());
    args.out = {sums, c10::ScalarType::Float, 0, tile.width(), 1};
    gemm(args);
    for (int64_t i = 0; i < tile.images; ++i) {
      kernel_table().gemm.finish(
          {sums + i * tile.count, tile.width(), 0, 0, group.out, tile.count},
          epilogue_to(output, tile.batch + i, channel, 0, bias));
    }
  });
}

void convolution_input_gradient(
    const ConvolutionShape& shape,
    const ImagesIn& output_gradient,
    const ArrayIn& weight,
    const ArrayIn& bias,
    const ImagesOut& input_gradient) {
  if (is_depthwise(shape)) {
    return depthwise_input_gradient(
        shape, output_gradient, weight, bias, input_gradient);
  }
  const Group group(shape);
  const auto input_size = volume(shape.input);
  if (input_size == 0) {
    return;
  }
  // A task adds to its own memory: whole channels of whole images.
  const auto images = std::clamp<int64_t>(
      kPositionsPerProduct / std::max<int64_t>(1, group.positions),
      1,
      shape.batch);
  const auto channels =
      std::clamp<int64_t>(kImageElements / (input_size * images), 1, group.in);
  const auto chunks = divide_up(group.in, channels);
  const auto batches = divide_up(shape.batch, images);
  run_tasks(batches * shape.groups * chunks, [&](int64_t task) {
    const auto batch = task / chunks / shape.groups * images;
    const auto g = task / chunks % shape.groups;
    const auto first = task % chunks * channels;
    const auto count = std::min(channels, group.in - first);
    const auto rows = count * group.taps;
    auto part = shape;
    part.batch = std::min(images, shape.batch - batch);
    const auto image_size = count * input_size;
    auto* image = scratch<ImageTag>(part.batch * image_size);
    std::fill_n(image, part.batch * image_size, 0.0f);
    const Tiling tiling(part, group.positions, rows);
    for (int64_t t = 0; t < tiling.count(); ++t) {
      auto tile = tiling[t];
      const auto first_image = tile.batch;
      tile.batch += batch;
      auto* columns = scratch<OutputTag>(rows * tile.width());
      GemmArgs args;
      args.m = rows;
      args.n = tile.width();
      args.k = group.out;
      args.a = {
          advance(
              weight.data,
              weight.dtype,
              (g * group.out * group.in + first) * group.taps),
          weight.dtype,
          0,
          1,
          group.depth};
      args.b = tile_of(
          output_gradient, g * group.out, group.out, shape.output, tile);
      args.out = {columns, c10::ScalarType::Float, 0, tile.width(), 1};
      gemm(args);
      for (int64_t i = 0; i < tile.images; ++i) {
        fold_add(
            shape,
            columns + i * tile.count,
            tile.width(),
            {0, rows, tile.begin, tile.count},
            image + (first_image + i) * image_size);
      }
    }
    for (int64_t i = 0; i < part.batch; ++i) {
      kernel_table().gemm.finish(
          {image + i * image_size, input_size, 0, 0, count, input_size},
          epilogue_to(
              input_gradient, batch + i, g * group.in + first, 0, bias));
    }
  });
}

void convolution_weight_gradient(
    const ConvolutionShape& shape,
    const ImagesIn& input,
    const ImagesIn& output_gradient,
    void* weight_gradient,
    c10::ScalarType weight_dtype) {
  if (is_depthwise(shape)) {
    return depthwise_weight_gradient(
        shape, input, output_gradient, weight_gradient, weight_dtype);
  }
  const Group group(shape);
  const Tiling tiling(shape, group.positions, group.depth);
  const bool pointwise = is_pointwise(shape);
  const auto size = group.out * group.depth;
  run_tasks(shape.groups, [&](int64_t g) {
    auto* sums = scratch<WeightTag>(size);
    std::fill_n(sums, size, 0.0f);
    for (int64_t t = 0; t < tiling.count(); ++t) {
      const auto tile = tiling[t];
      GemmArgs args;
      args.m = group.out;
      args.n = group.depth;
      args.k = tile.width();
      args.a = tile_of(
          output_gradient, g * group.out, group.out, shape.output, tile);
      if (!pointwise) {
        args.b = {
            unfold_tile(shape, input, g * group.in, group.depth, tile),
            input.dtype,
            0,
            1,
            tile.width()};
      } else if (tile.images == 1) {
        args.b = tile_of(input, g * group.in, group.in, shape.input, tile);
        std::swap(args.b.row_stride, args.b.column_stride);
      } else {
        // tile_of's memory holds the gradients.
        args.b = {
            unfold_tile(shape, input, g * group.in, group.in, tile),
            input.dtype,
            0,
            1,
            tile.width()};
      }
      args.out = {sums, c10::ScalarType::Float, 0, group.depth, 1};
      args.addend = {sums, c10::ScalarType::Float, 0, group.depth, 1};
      args.beta = 1.0f;
      gemm(args);
    }
    Epilogue epilogue{
        const_cast<void*>(advance(weight_gradient, weight_dtype, g * size)),
        weight_dtype,
        group.depth,
        1};
    epilogue.alpha = 1.0f;
    kernel_table().gemm.finish(
        {sums, group.depth, 0, 0, group.out, group.depth}, epilogue);
  });
}

}  // namespace neuron::host_kernels

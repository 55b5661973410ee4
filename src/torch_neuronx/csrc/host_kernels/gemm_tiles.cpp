#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>

#include "host_kernels/gemm_paths.h"
#include "host_kernels/rounding.h"
#include "host_kernels/scratch.h"

namespace neuron::host_kernels {
namespace {

// Sizes of blocks: a panel pair stays in the first-level cache, the packed
// left block in the second level.
constexpr int64_t kWordsPerBlock = 256;
constexpr int64_t kRowsPerBlock = 336;
constexpr int64_t kRowsPerTile = 672;
constexpr int64_t kColumnsPerTile = 1024;
constexpr int64_t kMargin = 16;  // words after a panel
// Below this many multiply-adds a second thread costs more than it brings.
constexpr int64_t kSerialWork = 1 << 18;
// A sum may be cut into parts of at least this depth ...
constexpr int64_t kDepthPerPart = 2048;
// ... when the output has at most this many elements.
constexpr int64_t kSplitOutput = 1 << 18;

struct PackTag;
struct SumTag;
struct PartTag;

struct Plan {
  int64_t tile_rows;
  int64_t tile_columns;
  int64_t row_tiles;
  int64_t column_tiles;
  int64_t parts;  // of the sum
  int64_t part_depth;
  int64_t threads;
};

Plan make_plan(const GemmArgs& args, const GemmKernels& kernels) {
  Plan plan{};
  const int64_t available =
      at::in_parallel_region() ? 1 : at::get_num_threads();
  const auto work = args.batch * args.m * args.n * args.k;
  plan.threads = work <= kSerialWork ? 1 : available;
  const auto even = [](int64_t size, int64_t most, int64_t step) {
    return round_up(divide_up(size, divide_up(size, most)), step);
  };
  plan.tile_rows = even(args.m, kRowsPerTile, kernels.panel_rows);
  plan.tile_columns = even(args.n, kColumnsPerTile, kernels.panel_columns);
  const auto tiles = [&] {
    plan.row_tiles = divide_up(args.m, plan.tile_rows);
    plan.column_tiles = divide_up(args.n, plan.tile_columns);
    return args.batch * plan.row_tiles * plan.column_tiles;
  };
  // Several tiles per thread even out a disturbed thread.
  while (plan.threads > 1 && tiles() < 4 * plan.threads) {
    const bool rows = plan.tile_rows >= plan.tile_columns;
    const int64_t step = rows ? kernels.panel_rows : kernels.panel_columns;
    auto& side = rows ? plan.tile_rows : plan.tile_columns;
    if (side <= 4 * step) {
      break;
    }
    side = round_up(side / 2, step);
  }
  const auto count = tiles();
  plan.parts = 1;
  if (count < plan.threads && args.m * args.n * args.batch <= kSplitOutput) {
    plan.parts = std::clamp<int64_t>(
        args.k / kDepthPerPart, 1, divide_up(plan.threads, count));
  }
  plan.part_depth = round_up(divide_up(args.k, plan.parts), 2);
  plan.threads = std::min(plan.threads, count * plan.parts);
  return plan;
}

PackSource rows_of(
    const MatrixIn& matrix,
    int64_t batch,
    int64_t row,
    int64_t rows,
    int64_t depth_at,
    int64_t depth,
    bool left) {
  const auto row_stride = left ? matrix.row_stride : matrix.column_stride;
  const auto depth_stride = left ? matrix.column_stride : matrix.row_stride;
  const auto offset =
      batch * matrix.batch_stride + row * row_stride + depth_at * depth_stride;
  return {
      advance(matrix.data, matrix.dtype, offset),
      matrix.dtype,
      row_stride,
      depth_stride,
      rows,
      depth};
}

// One tile of the output over depth [begin, end).
void run_tile(
    const GemmArgs& args,
    const GemmKernels& kernels,
    const PanelKernels& panels,
    int64_t batch,
    const Tile& tile,
    int64_t begin,
    int64_t end,
    const Epilogue& epilogue) {
  const auto depth = std::min(end - begin, kWordsPerBlock * panels.steps);
  const auto words = divide_up(depth, panels.steps);
  const auto block_rows = std::min(
      tile.rows, kRowsPerBlock / kernels.panel_rows * kernels.panel_rows);
  const auto a_stride = words * kernels.panel_rows + kMargin;
  const auto b_stride = words * kernels.panel_columns + kMargin;
  const auto a_size = divide_up(block_rows, kernels.panel_rows) * a_stride;
  const auto b_size = divide_up(tile.columns, kernels.panel_columns) * b_stride;
  auto* a = scratch<PackTag>(round_up(a_size, kMargin) + b_size);
  auto* b = a + round_up(a_size, kMargin);
  auto at = begin;
  do {
    const auto count = std::min(depth, end - at);
    const bool last = at + count >= end;
    panels.pack(
        rows_of(args.b, batch, tile.column, tile.columns, at, count, false),
        kernels.panel_columns,
        b,
        b_stride);
    for (int64_t i = 0; i < tile.rows; i += block_rows) {
      const auto rows = std::min(block_rows, tile.rows - i);
      panels.pack(
          rows_of(args.a, batch, tile.row + i, rows, at, count, true),
          kernels.panel_rows,
          a,
          a_stride);
      const PackedBlock block{
          a, b, a_stride, b_stride, divide_up(count, panels.steps)};
      const Tile part{
          tile.sums + i * tile.stride,
          tile.stride,
          tile.row + i,
          tile.column,
          rows,
          tile.columns};
      panels.multiply(block, part, at != begin, last ? &epilogue : nullptr);
    }
    at += count;
  } while (at < end);
}

// Adds the parts of the sum in order and finishes the output.
void add_parts(
    const GemmArgs& args,
    const GemmKernels& kernels,
    const Plan& plan,
    float* parts) {
  const auto size = args.batch * args.m * args.n;
  for (int64_t part = 1; part < plan.parts; ++part) {
    const auto* more = parts + part * size;
    for (int64_t i = 0; i < size; ++i) {
      parts[i] += more[i];
    }
  }
  for (int64_t batch = 0; batch < args.batch; ++batch) {
    kernels.finish(
        {parts + batch * args.m * args.n, args.n, 0, 0, args.m, args.n},
        epilogue_of(args, batch));
  }
}

}  // namespace

void gemm_tiles(
    const GemmArgs& args,
    const GemmKernels& kernels,
    const PanelKernels& panels) {
  const auto plan = make_plan(args, kernels);
  const auto per_batch = plan.row_tiles * plan.column_tiles;
  const auto per_part = args.batch * per_batch;
  float* parts =
      plan.parts == 1
          ? nullptr
          : scratch<PartTag>(plan.parts * args.batch * args.m * args.n);
  const auto run = [&](int64_t task) {
    const auto part = task / per_part;
    const auto batch = task % per_part / per_batch;
    const auto row = task % per_batch / plan.column_tiles * plan.tile_rows;
    const auto column = task % plan.column_tiles * plan.tile_columns;
    const auto columns = std::min(plan.tile_columns, args.n - column);
    const auto stride = round_up(columns, kernels.panel_columns);
    const auto rows = std::min(plan.tile_rows, args.m - row);
    auto epilogue = epilogue_of(args, batch);
    if (parts != nullptr) {
      epilogue = {
          parts + (part * args.batch + batch) * args.m * args.n,
          c10::ScalarType::Float,
          args.n,
          1};
      epilogue.alpha = 1.0f;
    }
    const Tile tile{
        scratch<SumTag>(rows * stride), stride, row, column, rows, columns};
    const auto begin = part * plan.part_depth;
    run_tile(
        args,
        kernels,
        panels,
        batch,
        tile,
        begin,
        std::min(args.k, begin + plan.part_depth),
        epilogue);
  };
  const auto tasks = plan.parts * per_part;
  if (plan.threads == 1) {
    for (int64_t task = 0; task < tasks; ++task) {
      run(task);
    }
  } else {
    std::atomic<int64_t> next{0};
    at::parallel_for(0, plan.threads, 1, [&](int64_t, int64_t) {
      for (int64_t task = next++; task < tasks; task = next++) {
        run(task);
      }
    });
  }
  if (parts != nullptr) {
    add_parts(args, kernels, plan, parts);
  }
}

}  // namespace neuron::host_kernels

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>

#include "host_kernels/gemm_paths.h"
#include "host_kernels/rounding.h"
#include "host_kernels/scratch.h"

namespace neuron::host_kernels {
namespace {

constexpr int64_t kMargin = 16;
// Weights per task, and below how many one thread does it all.
constexpr int64_t kTaskWeights = 1 << 17;
constexpr int64_t kSerialWeights = 1 << 16;
// Sums of one column chunk stay in the first-level cache.
constexpr int64_t kChunkSums = 4096;
constexpr int64_t kDepthPerPart = 1024;

struct RowsTag;
struct SumTag;

struct Plan {
  bool dot;         // along contiguous depth; otherwise across columns
  int64_t columns;  // per chunk
  int64_t chunks;
  int64_t parts;  // of the sum
  int64_t part_depth;
  int64_t threads;
};

Plan make_plan(const GemmArgs& args, const GemmKernels& kernels) {
  Plan plan{};
  plan.dot =
      args.b.row_stride == 1 && (args.b.column_stride != 1 || args.k >= args.n);
  const auto weights = args.batch * args.n * args.k;
  plan.threads = weights <= kSerialWeights || at::in_parallel_region()
                     ? 1
                     : at::get_num_threads();
  const auto most = std::max<int64_t>(kChunkSums / args.m, 256);
  const auto wanted = plan.dot ? divide_up(kTaskWeights, args.k)
                               : divide_up(args.n, plan.threads);
  plan.columns =
      std::clamp<int64_t>(round_up(wanted, kernels.lanes), kernels.lanes, most);
  plan.columns = std::min(plan.columns, args.n);
  plan.chunks = divide_up(args.n, plan.columns);
  plan.parts = 1;
  if (args.batch * plan.chunks < plan.threads) {
    plan.parts = std::clamp<int64_t>(
        args.k / kDepthPerPart,
        1,
        divide_up(plan.threads, args.batch * plan.chunks));
  }
  plan.part_depth = round_up(divide_up(args.k, plan.parts), 2);
  return plan;
}

// rows x depth of `a` as words, each row followed by a margin of zeros.
void copy_rows(
    const GemmArgs& args,
    const PanelKernels& panels,
    int64_t batch,
    int64_t begin,
    int64_t depth,
    float* words,
    int64_t stride) {
  const auto offset =
      batch * args.a.batch_stride + begin * args.a.column_stride;
  panels.copy_rows(
      {advance(args.a.data, args.a.dtype, offset),
       args.a.dtype,
       args.a.row_stride,
       args.a.column_stride,
       args.m,
       depth},
      words,
      stride);
}

}  // namespace

void gemm_skinny(
    const GemmArgs& args,
    const GemmKernels& kernels,
    const PanelKernels& wanted_panels) {
  const auto plan = make_plan(args, kernels);
  // Across columns, pairing two rows costs more than it saves for few rows.
  const auto& panels = plan.dot || args.m > 2 ? wanted_panels : kernels.fp32;
  const auto per_batch = plan.chunks * plan.parts;
  const auto tasks = args.batch * per_batch;
  float* parts =
      plan.parts == 1
          ? nullptr
          : scratch<SumTag>(args.batch * plan.parts * args.m * args.n);
  const auto run = [&](int64_t task) {
    const auto batch = task / per_batch;
    const auto part = task % per_batch / plan.chunks;
    const auto column = task % plan.chunks * plan.columns;
    const auto columns = std::min(plan.columns, args.n - column);
    const auto begin = part * plan.part_depth;
    const auto depth = std::clamp<int64_t>(args.k - begin, 0, plan.part_depth);
    const auto row_words =
        round_up(divide_up(depth, panels.steps), kMargin) + kMargin;
    auto* a = scratch<RowsTag>(args.m * (row_words + columns));
    copy_rows(args, panels, batch, begin, depth, a, row_words);
    auto* sums =
        parts == nullptr
            ? a + args.m * row_words
            : parts + (batch * plan.parts + part) * args.m * args.n + column;
    const auto sums_stride = parts == nullptr ? columns : args.n;
    for (int64_t row = 0; row < args.m; ++row) {
      std::fill_n(sums + row * sums_stride, columns, 0.0f);
    }
    const auto offset = batch * args.b.batch_stride +
                        begin * args.b.row_stride +
                        column * args.b.column_stride;
    const SkinnyBlock block{
        a,
        row_words,
        args.m,
        advance(args.b.data, args.b.dtype, offset),
        args.b.dtype,
        args.b.row_stride,
        args.b.column_stride,
        columns,
        depth,
        sums,
        sums_stride};
    plan.dot ? panels.skinny_dot(block) : panels.skinny_axpy(block);
    if (parts == nullptr) {
      kernels.finish(
          {sums, columns, 0, column, args.m, columns},
          epilogue_of(args, batch));
    }
  };
  if (plan.threads == 1 || tasks == 1) {
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
  if (parts == nullptr) {
    return;
  }
  const auto size = args.m * args.n;
  for (int64_t batch = 0; batch < args.batch; ++batch) {
    auto* sums = parts + batch * plan.parts * size;
    for (int64_t part = 1; part < plan.parts; ++part) {
      for (int64_t i = 0; i < size; ++i) {
        sums[i] += sums[part * size + i];
      }
    }
    kernels.finish(
        {sums, args.n, 0, 0, args.m, args.n}, epilogue_of(args, batch));
  }
}

}  // namespace neuron::host_kernels

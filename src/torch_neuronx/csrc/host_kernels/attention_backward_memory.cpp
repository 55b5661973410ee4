#include "host_kernels/attention_backward_memory.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace neuron::host_kernels {

BackwardSizes::BackwardSizes(
    const AttentionShape& shape, const AttentionTools& tools)
    : columns(tools.gemm.panel_columns),
      chunk(kPanelsPerChunk * columns),
      group(shape.heads / shape.kv_heads),
      head_panels(divide_up(shape.queries, columns)),
      padded_queries(head_panels * columns),
      padded_width(round_up(shape.width, columns)),
      padded_value_width(round_up(shape.value_width, columns)),
      query_gradients(group * head_panels * shape.width * columns) {}

BackwardMemory take_backward_memory(
    Arena& arena,
    const AttentionShape& shape,
    const AttentionTools& tools,
    const BackwardSizes& sizes,
    float* query_gradients) {
  const auto steps = tools.panels.steps;
  const auto left = [&](int64_t rows, int64_t depth) {
    return Packed::take(arena, rows, depth, tools.gemm.panel_rows, steps);
  };
  const auto right = [&](int64_t rows, int64_t depth) {
    return Packed::take(arena, rows, depth, sizes.columns, steps);
  };
  const auto w = shape.width;
  const auto vw = shape.value_width;
  const auto chunk = sizes.chunk;
  BackwardMemory m;
  m.keys = left(kBackwardKeys, w);
  m.keys_by_width = left(w, kBackwardKeys);
  m.values = left(kBackwardKeys, vw);
  m.key_gradients = arena.take(kBackwardKeys * sizes.padded_width);
  m.value_gradients = arena.take(kBackwardKeys * sizes.padded_value_width);
  m.queries = right(chunk, w);
  m.out_gradients = right(chunk, vw);
  m.queries_by_width = right(w, chunk);
  m.out_gradients_by_width = right(vw, chunk);
  m.probabilities = left(kBackwardKeys, chunk);
  m.score_gradients = left(kBackwardKeys, chunk);
  m.probability_rows = arena.take(kBackwardKeys * chunk);
  m.gradient_rows = arena.take(kBackwardKeys * chunk);
  m.scores = arena.take(kBackwardKeys * sizes.columns);
  m.gradients = arena.take(kBackwardKeys * sizes.columns);
  m.mask = arena.take(kBackwardKeys * sizes.columns);
  m.log_sum_exp = arena.take(sizes.group * sizes.padded_queries);
  m.delta = arena.take(sizes.group * sizes.padded_queries);
  m.line = arena.take(2 * (round_up(vw, 16) + 16));
  m.query_gradients = query_gradients == nullptr
                          ? arena.take(sizes.query_gradients)
                          : query_gradients;
  return m;
}

float prepare_queries(
    const AttentionShape& shape,
    const AttentionTools& tools,
    const BackwardSizes& sizes,
    const BackwardMemory& memory,
    const HeadsIn& out,
    const HeadsIn& out_gradient,
    const float* log_sum_exp,
    int64_t batch,
    int64_t head,
    int64_t g) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto vw = shape.value_width;
  const auto stride = round_up(vw, 16) + 16;
  auto* lse_out = memory.log_sum_exp + g * sizes.padded_queries;
  auto* delta = memory.delta + g * sizes.padded_queries;
  // exp2(score - inf) is zero: for padding, and where no key is seen.
  std::fill_n(lse_out, sizes.padded_queries, kInfinity);
  std::fill_n(delta, sizes.padded_queries, 0.0f);
  float sink_gradient = 0.0f;
  for (int64_t i = 0; i < shape.queries; ++i) {
    const auto lse =
        log_sum_exp[(batch * shape.heads + head) * shape.queries + i];
    if (lse != -kInfinity) {
      lse_out[i] = lse * kLog2OfE;
    }
    auto* o = memory.line;
    auto* gradient = memory.line + stride;
    tools.gemm.fp32.copy_rows(head_rows(out, batch, head, i, 1, vw), o, stride);
    tools.gemm.fp32.copy_rows(
        head_rows(out_gradient, batch, head, i, 1, vw), gradient, stride);
    float sum[8] = {};
    for (int64_t d = 0; d < stride - 8; d += 8) {
      for (int j = 0; j < 8; ++j) {
        sum[j] += o[d + j] * gradient[d + j];
      }
    }
    for (const float x : sum) {
      delta[i] += x;
    }
    if (shape.sinks != nullptr) {
      sink_gradient -= std::exp(shape.sinks[head] - lse) * delta[i];
    }
  }
  return sink_gradient;
}

}  // namespace neuron::host_kernels

// Memory and sizes of one task of the backward pass. Not for other folders.
#pragma once

#include "host_kernels/attention_tiles.h"

namespace neuron::host_kernels {

// Query panels whose probabilities are summed over in one product.
constexpr int64_t kPanelsPerChunk = 4;
constexpr int64_t kBackwardKeys = 112;  // per block

struct BackwardSizes {
  int64_t columns;  // of a panel: queries
  int64_t chunk;    // queries
  int64_t group;    // heads that share a key head
  int64_t head_panels;
  int64_t padded_queries;
  int64_t padded_width;
  int64_t padded_value_width;
  int64_t query_gradients;  // floats, of one group

  BackwardSizes(const AttentionShape& shape, const AttentionTools& tools);
};

// Hands out the memory of one task; a first pass with null counts it.
class Arena {
 public:
  explicit Arena(float* memory) : memory_(memory) {}
  float* take(int64_t count) {
    auto* taken = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += round_up(count + kPanelMargin, kPanelMargin);
    return taken;
  }
  int64_t used() const { return used_; }

 private:
  float* memory_;
  int64_t used_ = 0;
};

// A packed operand: panels of `width` rows.
struct Packed {
  float* panels;
  int64_t stride;
  int64_t width;

  static Packed take(
      Arena& arena, int64_t rows, int64_t depth, int64_t width, int steps) {
    const auto stride = divide_up(depth, steps) * width + kPanelMargin;
    return {arena.take(divide_up(rows, width) * stride), stride, width};
  }
  void fill(const PanelKernels& kernels, const PackSource& source) const {
    kernels.pack(source, static_cast<int>(width), panels, stride);
  }
};

struct BackwardMemory {
  // Of a block of keys.
  Packed keys;           // rows: keys
  Packed keys_by_width;  // rows: width
  Packed values;
  float* key_gradients;  // fp32 [keys][whole panels]
  float* value_gradients;
  // Of a chunk of queries.
  Packed queries;  // columns: queries
  Packed out_gradients;
  Packed queries_by_width;  // columns: width
  Packed out_gradients_by_width;
  Packed probabilities;  // rows: keys, depth: queries
  Packed score_gradients;
  float* probability_rows;
  float* gradient_rows;
  // Of one panel.
  float* scores;
  float* gradients;
  float* mask;
  // Of all queries of the heads of one key head.
  float* log_sum_exp;
  float* delta;
  float* query_gradients;  // per panel: width x panel columns
  float* line;             // one converted row of output and its gradient
};

// query_gradients may be memory of the caller's.
BackwardMemory take_backward_memory(
    Arena& arena,
    const AttentionShape& shape,
    const AttentionTools& tools,
    const BackwardSizes& sizes,
    float* query_gradients);

// Fills log_sum_exp (in log2) and delta for all queries of head g of a group.
// Returns the gradient of its sink, if there is one.
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
    int64_t g);

}  // namespace neuron::host_kernels

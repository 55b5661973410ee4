// What forward, decode and backward share. Not for other folders.
#pragma once

#include <initializer_list>

#include "host_kernels/attention.h"
#include "host_kernels/kernel_table.h"
#include "host_kernels/rounding.h"

namespace neuron::host_kernels {

constexpr int64_t kPanelMargin = 16;  // words after a packed panel
constexpr float kLog2OfE = 1.44269504088896341f;

// The kernels for one kind of packed word.
struct AttentionTools {
  const GemmKernels& gemm;
  const PanelKernels& panels;
  const AttentionKernels& attention;
  const AttentionWordKernels& words;
};

// bf16 pairs where every operand is exact in bf16, otherwise fp32.
AttentionTools attention_tools(std::initializer_list<c10::ScalarType> operands);

// Keys [begin, end) that at least one of the queries can see.
struct KeySpan {
  int64_t begin;
  int64_t end;
};
KeySpan visible_keys(
    const AttentionShape& shape, int64_t batch, int64_t query, int64_t queries);

// Consecutive queries of one head: one packed panel.
struct QueryPanel {
  int64_t batch;
  int64_t head;
  int64_t query;
  int64_t queries;
};

// Brings the raw products of a panel with keys [key, key + block.keys) to
// scores: masks them. Returns the scale that the exponent still needs.
float mask_scores(
    const AttentionShape& shape,
    const AttentionTools& tools,
    const QueryPanel& panel,
    int64_t key,
    const ScoreBlock& block,
    float* mask_scratch);

// rows x width of a tensor of heads, with rows or the width as depth.
PackSource head_rows(
    const HeadsIn& tensor,
    int64_t batch,
    int64_t head,
    int64_t row,
    int64_t rows,
    int64_t width);
PackSource swapped(PackSource source);

// Few queries: keys and values are streamed as they lie.
constexpr int64_t kDecodeQueries = 8;
void attention_decode(
    const AttentionShape& shape,
    const HeadsIn& query,
    const HeadsIn& key,
    const HeadsIn& value,
    const HeadsOut& out,
    float* log_sum_exp);

}  // namespace neuron::host_kernels

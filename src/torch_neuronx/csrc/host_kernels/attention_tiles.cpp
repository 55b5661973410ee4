#include "host_kernels/attention_tiles.h"

#include <algorithm>

#include "host_kernels/gemm_paths.h"

namespace neuron::host_kernels {

AttentionTools attention_tools(
    std::initializer_list<c10::ScalarType> operands) {
  const auto& table = kernel_table();
  const bool pairs =
      table.gemm.bf16_pairs.pack != nullptr &&
      std::all_of(operands.begin(), operands.end(), exact_in_bf16);
  return {
      table.gemm,
      pairs ? table.gemm.bf16_pairs : table.gemm.fp32,
      table.attention,
      pairs ? table.attention.bf16_pairs : table.attention.fp32};
}

KeySpan visible_keys(
    const AttentionShape& shape,
    int64_t batch,
    int64_t query,
    int64_t queries) {
  const auto keys =
      shape.key_counts == nullptr ? shape.keys : shape.key_counts[batch];
  const auto begin = std::clamp<int64_t>(query + shape.visible.first, 0, keys);
  const auto end = std::clamp<int64_t>(
      query + queries - 1 + shape.visible.last + 1, begin, keys);
  return {begin, end};
}

float mask_scores(
    const AttentionShape& shape,
    const AttentionTools& tools,
    const QueryPanel& panel,
    int64_t key,
    const ScoreBlock& block,
    float* mask_scratch) {
  const auto& mask = shape.mask;
  float scale = shape.scale;
  if (mask.data != nullptr) {
    const bool boolean = mask.dtype == c10::ScalarType::Bool;
    const auto dtype = boolean ? c10::ScalarType::Char : mask.dtype;
    const auto offset = panel.batch * mask.batch_stride +
                        panel.head * mask.head_stride +
                        panel.query * mask.query_stride + key * mask.key_stride;
    tools.gemm.fp32.pack(
        {advance(mask.data, dtype, offset),
         dtype,
         mask.query_stride,
         mask.key_stride,
         panel.queries,
         block.keys},
        tools.gemm.panel_columns,
        mask_scratch,
        0);
    tools.attention.add_mask(block, scale, mask_scratch, boolean);
    scale = 1.0f;
  }
  const auto first = shape.visible.first - key + panel.query;
  const auto last = shape.visible.last - key + panel.query;
  if (first > 1 - panel.queries || last < block.keys - 1) {
    tools.attention.hide_keys(block, first, last);
  }
  return scale * kLog2OfE;
}

PackSource head_rows(
    const HeadsIn& tensor,
    int64_t batch,
    int64_t head,
    int64_t row,
    int64_t rows,
    int64_t width) {
  const auto offset = batch * tensor.batch_stride + head * tensor.head_stride +
                      row * tensor.row_stride;
  return {
      advance(tensor.data, tensor.dtype, offset),
      tensor.dtype,
      tensor.row_stride,
      1,
      rows,
      width};
}

PackSource swapped(PackSource source) {
  std::swap(source.row_stride, source.depth_stride);
  std::swap(source.rows, source.depth);
  return source;
}

}  // namespace neuron::host_kernels

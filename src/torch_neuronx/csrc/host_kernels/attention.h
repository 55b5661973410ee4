// Scaled dot-product attention in tiles: memory grows with the sequence, not
// with its square.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace neuron::host_kernels {

// [batch, heads, rows, width]; the width is contiguous. Strides count elements.
struct HeadsIn {
  const void* data = nullptr;
  c10::ScalarType dtype = c10::ScalarType::Float;
  int64_t batch_stride = 0;
  int64_t head_stride = 0;
  int64_t row_stride = 0;
};

struct HeadsOut {
  void* data = nullptr;
  c10::ScalarType dtype = c10::ScalarType::Float;
  int64_t batch_stride = 0;
  int64_t head_stride = 0;
  int64_t row_stride = 0;
};

// Added to the scaled scores, or (dtype Bool) true where a key is visible.
// Strides may be zero. data is null when there is no mask.
struct AttentionMask {
  const void* data = nullptr;
  c10::ScalarType dtype = c10::ScalarType::Float;
  int64_t batch_stride = 0;
  int64_t head_stride = 0;
  int64_t query_stride = 0;
  int64_t key_stride = 0;
};

// Query i sees key j when j - i is in [first, last]. Causal attention aligned
// at the top left has last = 0, at the bottom right last = keys - queries; a
// sliding window of w keys has first = last - w + 1.
struct KeyRange {
  int64_t first = INT64_MIN / 2;
  int64_t last = INT64_MAX / 2;
};

struct AttentionShape {
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t kv_heads = 1;  // divides heads; head h reads h / (heads / kv_heads)
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t width = 0;        // of query and key
  int64_t value_width = 0;  // of value and output
  float scale = 1.0f;
  KeyRange visible;
  AttentionMask mask;
  // Per head, a score that joins the softmax without a value. May be null.
  const float* sinks = nullptr;
  // Per batch entry, how many keys are valid. May be null: all.
  const int64_t* key_counts = nullptr;
};

// Query, key, value: any operand of gemm(); output: float, bfloat16 or half.
// log_sum_exp: [batch, heads, queries] fp32, contiguous, or null. A query that
// sees no key gives zeros and -inf.
void attention_forward(
    const AttentionShape& shape,
    const HeadsIn& query,
    const HeadsIn& key,
    const HeadsIn& value,
    const HeadsOut& out,
    float* log_sum_exp);

struct AttentionGradients {
  HeadsOut query;
  HeadsOut key;
  HeadsOut value;
  float* sinks = nullptr;  // [heads], or null
};

// Each gradient is written, not added to. `out` and `log_sum_exp` are those of
// attention_forward.
void attention_backward(
    const AttentionShape& shape,
    const HeadsIn& query,
    const HeadsIn& key,
    const HeadsIn& value,
    const HeadsIn& out,
    const HeadsIn& out_gradient,
    const float* log_sum_exp,
    const AttentionGradients& gradients);

}  // namespace neuron::host_kernels

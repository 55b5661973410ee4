// The parts of attention that exist once per instruction set, besides the
// products of gemm_kernels.h. Scores are held transposed, [keys][panel
// columns] with one query per column, so that a softmax over keys needs no
// sum across lanes and its result is already a packed right operand.
#pragma once

#include <cstdint>

namespace neuron::host_kernels {

// keys x panel columns.
struct ScoreBlock {
  float* scores;
  int64_t keys;
};

// The online softmax of one panel of queries, in units of log2.
struct RunningSoftmax {
  float* maximum;  // per column
  float* sum;      // per column
  float* output;   // output_rows x panel columns, rescaled
  int64_t output_rows;
};

// Gradients of the scores of one block.
struct GradientBlock {
  const float* scores;  // keys x panel columns
  float* gradients;     // in: of the probabilities; out: packed, of the scores
  // Out, one value each: bf16 where the products take bf16 pairs, else fp32.
  void* probability_rows;
  void* gradient_rows;
  int64_t rows_stride;
  int64_t keys;
  float scale;               // of the scores
  float log2_scale;          // of the exponent
  const float* log_sum_exp;  // per column, in log2
  const float* delta;        // per column: sum of output * its gradient
};

struct AttentionWordKernels {
  // Scores become packed probabilities; the state is brought up to date.
  void (*softmax_columns)(
      const ScoreBlock& block, float log2_scale, const RunningSoftmax& state);
  void (*score_gradients)(const GradientBlock& block);
};

struct AttentionKernels {
  AttentionWordKernels fp32;
  AttentionWordKernels bf16_pairs;
  // scores = scale * scores + mask, where mask is laid out as the scores; a
  // boolean mask hides the keys at which it is zero.
  void (*add_mask)(
      const ScoreBlock& block, float scale, const float* mask, bool boolean);
  // Hides key k from column c unless first <= k - c <= last.
  void (*hide_keys)(const ScoreBlock& block, int64_t first, int64_t last);
  // One contiguous row: raises *maximum to the largest scaled score, replaces
  // scores by exp2(log2_scale * score - *maximum) and returns their sum.
  float (*softmax_row)(
      float* scores, int64_t count, float log2_scale, float* maximum);
};

}  // namespace neuron::host_kernels

// Softmax, masks and score gradients of attention, on transposed scores.
#pragma once

#include "host_kernels/attention_kernels.h"
#include "host_kernels/isa/exponential.h"
#include "host_kernels/isa/multiply.h"

namespace neuron::host_kernels::NEURON_ISA_NAMESPACE {

inline F32 minus_infinity() { return broadcast(-__builtin_inff()); }

// A maximum over no visible key must not make -inf - -inf.
inline F32 finite_or_zero(F32 maximum) {
  return select(equal(maximum, minus_infinity()), zero(), maximum);
}

// Two fp32 values to one word of packed pairs (the second may be absent), or
// one to a word of fp32.
template <class Words>
inline void store_word(float* out, F32 first, F32 second) {
  if constexpr (Words::kSteps == 1) {
    store(out, first);
  } else {
    const auto low = bfloat16_bits(first);
    const auto high = int_shift_left<16>(bfloat16_bits(second));
    store(out, from_bits(int_or(low, high)));
  }
}

template <class Words>
void softmax_columns(
    const ScoreBlock& block, float log2_scale, const RunningSoftmax& state) {
  const auto scale = broadcast(log2_scale);
  F32 correction[kPanelVectors];
#pragma GCC unroll 2
  for (int v = 0; v < kPanelVectors; ++v) {
    auto* scores = block.scores + v * kLanes;
    const auto before = load(state.maximum + v * kLanes);
    F32 high[4] = {before, before, before, before};
    int64_t k = 0;
    for (; k + 4 <= block.keys; k += 4) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        high[i] = max(high[i], load(scores + (k + i) * kPanelColumns) * scale);
      }
    }
    for (; k < block.keys; ++k) {
      high[0] = max(high[0], load(scores + k * kPanelColumns) * scale);
    }
    const auto maximum = max(max(high[0], high[1]), max(high[2], high[3]));
    store(state.maximum + v * kLanes, maximum);
    const auto base = zero() - finite_or_zero(maximum);
    correction[v] = exp2(before + base);
    F32 sums[2] = {load(state.sum + v * kLanes) * correction[v], zero()};
    for (k = 0; k < block.keys; k += Words::kSteps) {
      const auto p0 = exp2(fma(load(scores + k * kPanelColumns), scale, base));
      auto p1 = zero();
      if (Words::kSteps == 2 && k + 1 < block.keys) {
        p1 = exp2(fma(load(scores + (k + 1) * kPanelColumns), scale, base));
      }
      sums[k / Words::kSteps % 2] = sums[k / Words::kSteps % 2] + (p0 + p1);
      store_word<Words>(scores + k / Words::kSteps * kPanelColumns, p0, p1);
    }
    store(state.sum + v * kLanes, sums[0] + sums[1]);
  }
  for (int64_t r = 0; r < state.output_rows; ++r) {
    auto* row = state.output + r * kPanelColumns;
#pragma GCC unroll 2
    for (int v = 0; v < kPanelVectors; ++v) {
      store(row + v * kLanes, load(row + v * kLanes) * correction[v]);
    }
  }
}

template <class Words>
void score_gradients(const GradientBlock& block) {
  using Value = typename Words::Value;
  auto* probability_rows = static_cast<Value*>(block.probability_rows);
  auto* gradient_rows = static_cast<Value*>(block.gradient_rows);
  const auto log2_scale = broadcast(block.log2_scale);
  const auto scale = broadcast(block.scale);
#pragma GCC unroll 2
  for (int v = 0; v < kPanelVectors; ++v) {
    const auto base = zero() - load(block.log_sum_exp + v * kLanes);
    const auto delta = load(block.delta + v * kLanes);
    const auto gradient_of = [&](int64_t k) {
      const auto at = k * kPanelColumns + v * kLanes;
      const auto out = k * block.rows_stride + v * kLanes;
      const auto p = exp2(fma(load(block.scores + at), log2_scale, base));
      const auto g = p * (load(block.gradients + at) - delta) * scale;
      store(probability_rows + out, p);
      store(gradient_rows + out, g);
      return g;
    };
    for (int64_t k = 0; k < block.keys; k += Words::kSteps) {
      const auto first = gradient_of(k);
      auto second = zero();
      if (Words::kSteps == 2 && k + 1 < block.keys) {
        second = gradient_of(k + 1);
      }
      store_word<Words>(
          block.gradients + k / Words::kSteps * kPanelColumns + v * kLanes,
          first,
          second);
    }
  }
}

inline void add_mask(
    const ScoreBlock& block, float scale, const float* mask, bool boolean) {
  for (int64_t i = 0; i < block.keys * kPanelColumns; i += kLanes) {
    const auto score = load(block.scores + i) * broadcast(scale);
    const auto m = load(mask + i);
    store(
        block.scores + i,
        boolean ? select(equal(m, zero()), minus_infinity(), score)
                : score + m);
  }
}

inline void hide_keys(const ScoreBlock& block, int64_t first, int64_t last) {
  alignas(64) float columns[kPanelColumns];
  for (int c = 0; c < kPanelColumns; ++c) {
    columns[c] = static_cast<float>(c);
  }
  // Visible columns of key k: k - last .. k - first.
  const auto bounded = [](int64_t x) {
    constexpr int64_t kFar = 1 << 20;
    return static_cast<float>(x < -kFar ? -kFar : x > kFar ? kFar : x);
  };
  for (int64_t k = 0; k < block.keys; ++k) {
    const auto low = broadcast(bounded(k - last));
    const auto high = broadcast(bounded(k - first));
    for (int v = 0; v < kPanelVectors; ++v) {
      auto* at = block.scores + k * kPanelColumns + v * kLanes;
      const auto column = load(columns + v * kLanes);
      auto score = select(less(column, low), minus_infinity(), load(at));
      score = select(less(high, column), minus_infinity(), score);
      store(at, score);
    }
  }
}

inline float softmax_row(
    float* scores, int64_t count, float log2_scale, float* maximum) {
  const auto scale = broadcast(log2_scale);
  auto high = broadcast(*maximum);
  for (int64_t i = 0; i + kLanes <= count; i += kLanes) {
    high = max(high, load(scores + i) * scale);
  }
  float top = largest(high);
  for (int64_t i = count / kLanes * kLanes; i < count; ++i) {
    const float x = scores[i] * log2_scale;
    top = x > top ? x : top;
  }
  *maximum = top;
  const auto base = zero() - finite_or_zero(broadcast(top));
  auto total = zero();
  for (int64_t i = 0; i < count; i += kLanes) {
    const auto left = count - i;
    const auto p = exp2(fma(load_some(scores + i, left), scale, base));
    store_some(scores + i, p, left);
    // Lanes past the end hold zeros again.
    total = total + load_some(scores + i, left);
  }
  return sum(total);
}

template <class Words>
constexpr AttentionWordKernels attention_kernels() {
  return {softmax_columns<Words>, score_gradients<Words>};
}

}  // namespace neuron::host_kernels::NEURON_ISA_NAMESPACE

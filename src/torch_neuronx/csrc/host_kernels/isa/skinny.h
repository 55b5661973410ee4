// Few rows against a weight that is streamed from memory once, unpacked.
#pragma once

#include "host_kernels/gemm_kernels.h"
#include "host_kernels/isa/pack.h"

namespace neuron::host_kernels::NEURON_ISA_NAMESPACE {

#if NEURON_ISA >= 2
constexpr int kDotColumns = 4;
#else
constexpr int kDotColumns = 2;
#endif
constexpr int kDotRows = 4;

// kRows x kColumns dot products along contiguous depth.
template <class Words, class T, int kRows, int kColumns>
void dot_block(const SkinnyBlock& block, int64_t row, int64_t column) {
  const auto* a = block.a + row * block.a_stride;
  const auto* b =
      static_cast<const T*>(block.b) + column * block.b_column_stride;
  F32 acc[kRows][kColumns];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) {
      acc[r][c] = zero();
    }
  }
  constexpr int64_t kStep = kLanes * Words::kSteps;
  const auto step = [&](int64_t k, int64_t count, bool whole) {
    F32 weights[kColumns];
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) {
      weights[c] = Words::along(
          b + c * block.b_column_stride + k, whole ? kStep : count);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const auto* from = a + r * block.a_stride + k / Words::kSteps;
      // The rows of `a` end with a margin of zeros.
      const auto values = load(from);
#pragma GCC unroll 8
      for (int c = 0; c < kColumns; ++c) {
        acc[r][c] = Words::multiply_add(values, weights[c], acc[r][c]);
      }
    }
  };
  int64_t k = 0;
  for (; k + kStep <= block.depth; k += kStep) {
    step(k, kStep, true);
  }
  if (k < block.depth) {
    step(k, block.depth - k, false);
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) {
      block.sums[(row + r) * block.sums_stride + column + c] += sum(acc[r][c]);
    }
  }
}

template <class Words, class T, int kColumns>
void dot_rows(const SkinnyBlock& block, int64_t column) {
  int64_t row = 0;
  for (; row + kDotRows <= block.rows; row += kDotRows) {
    dot_block<Words, T, kDotRows, kColumns>(block, row, column);
  }
  switch (block.rows - row) {
    case 3:
      return dot_block<Words, T, 3, kColumns>(block, row, column);
    case 2:
      return dot_block<Words, T, 2, kColumns>(block, row, column);
    case 1:
      return dot_block<Words, T, 1, kColumns>(block, row, column);
    default:
      return;
  }
}

template <class Words, class T>
void skinny_dot_type(const SkinnyBlock& block) {
  int64_t column = 0;
  for (; column + kDotColumns <= block.columns; column += kDotColumns) {
    dot_rows<Words, T, kDotColumns>(block, column);
  }
  for (; column < block.columns; ++column) {
    dot_rows<Words, T, 1>(block, column);
  }
}

// sums[row] += a[row][k .. k + kDepth) * b[k .. k + kDepth), all columns.
template <class T, int kDepth>
void axpy_block(const SkinnyBlock& block, int64_t k) {
  const auto* b = static_cast<const T*>(block.b) + k * block.b_depth_stride;
  for (int64_t column = 0; column < block.columns; column += kLanes) {
    const auto left = block.columns - column;
    F32 weights[kDepth];
#pragma GCC unroll 8
    for (int d = 0; d < kDepth; ++d) {
      weights[d] = load_some(b + d * block.b_depth_stride + column, left);
    }
    for (int64_t row = 0; row < block.rows; ++row) {
      const auto* a = block.a + row * block.a_stride + k;
      auto* sums = block.sums + row * block.sums_stride + column;
      auto even = load_some(sums, left);
      auto odd = zero();
#pragma GCC unroll 8
      for (int d = 0; d < kDepth; ++d) {
        auto& part = d % 2 == 0 ? even : odd;
        part = fma(broadcast(a[d]), weights[d], part);
      }
      store_some(sums, even + odd, left);
    }
  }
}

template <class T>
void skinny_axpy_type(const SkinnyBlock& block) {
  int64_t k = 0;
  for (; k + 8 <= block.depth; k += 8) {
    axpy_block<T, 8>(block, k);
  }
  for (; k < block.depth; ++k) {
    axpy_block<T, 1>(block, k);
  }
}

template <class Words>
void skinny_dot(const SkinnyBlock& block) {
  with_operand_type<Words>(
      block.b_dtype, [&]<class T>(T*) { skinny_dot_type<Words, T>(block); });
}

inline void skinny_axpy(const SkinnyBlock& block) {
  with_operand_type<Fp32Words>(
      block.b_dtype, [&]<class T>(T*) { skinny_axpy_type<T>(block); });
}

}  // namespace neuron::host_kernels::NEURON_ISA_NAMESPACE

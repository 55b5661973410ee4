// Few rows against a weight that is streamed from memory once, unpacked.
#pragma once

#include "host_kernels/gemm_kernels.h"
#include "host_kernels/isa/pack.h"

namespace neuron::host_kernels::NEURON_ISA_NAMESPACE {

constexpr int kDotRows = 4;
// As many columns as leave all sums in registers.
constexpr int kDotColumns = 4;
#if NEURON_ISA >= 2
constexpr int kDotColumnsOfManyRows = 4;
#else
constexpr int kDotColumnsOfManyRows = 2;
#endif

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

template <class Words, class T, int kColumns>
void dot_columns(const SkinnyBlock& block) {
  int64_t column = 0;
  for (; column + kColumns <= block.columns; column += kColumns) {
    dot_rows<Words, T, kColumns>(block, column);
  }
  for (; column < block.columns; ++column) {
    dot_rows<Words, T, 1>(block, column);
  }
}

template <class Words, class T>
void skinny_dot_type(const SkinnyBlock& block) {
  if (block.rows > 2) {
    dot_columns<Words, T, kDotColumnsOfManyRows>(block);
  } else {
    dot_columns<Words, T, kDotColumns>(block);
  }
}

// sums[row] += a[row][k .. k + depth) * b[k .. k + depth), for kVectors vectors
// of columns from `column`; depth is kWords words, the last may be half full.
template <class Words, class T, int kWords, int kVectors>
void axpy_step(
    const SkinnyBlock& block, int64_t k, int64_t column, int64_t left) {
  const auto* b = static_cast<const T*>(block.b) + k * block.b_depth_stride;
  F32 weights[kWords][kVectors];
#pragma GCC unroll 8
  for (int w = 0; w < kWords; ++w) {
    const auto* row = b + w * Words::kSteps * block.b_depth_stride + column;
    const bool half =
        Words::kSteps == 2 && k + (w + 1) * Words::kSteps > block.depth;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      weights[w][v] = Words::across(
          row + v * kLanes,
          half ? nullptr : row + block.b_depth_stride + v * kLanes,
          kVectors == 1 ? left : kLanes);
    }
  }
  for (int64_t r = 0; r < block.rows; ++r) {
    const auto* a = block.a + r * block.a_stride + k / Words::kSteps;
    auto* sums = block.sums + r * block.sums_stride + column;
    F32 acc[kVectors][2];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      acc[v][0] = load_some(sums + v * kLanes, kVectors == 1 ? left : kLanes);
      acc[v][1] = zero();
    }
#pragma GCC unroll 8
    for (int w = 0; w < kWords; ++w) {
      const auto value = broadcast(a[w]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        acc[v][w % 2] =
            Words::multiply_add(value, weights[w][v], acc[v][w % 2]);
      }
    }
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      store_some(
          sums + v * kLanes,
          acc[v][0] + acc[v][1],
          kVectors == 1 ? left : kLanes);
    }
  }
}

template <class Words, class T, int kWords>
void axpy_block(const SkinnyBlock& block, int64_t k) {
  constexpr int kVectors = NEURON_ISA >= 2 ? 2 : 1;
  int64_t column = 0;
  for (; column + kVectors * kLanes <= block.columns;
       column += kVectors * kLanes) {
    axpy_step<Words, T, kWords, kVectors>(block, k, column, kLanes);
  }
  for (; column < block.columns; column += kLanes) {
    axpy_step<Words, T, kWords, 1>(block, k, column, block.columns - column);
  }
}

template <class Words, class T>
void skinny_axpy_type(const SkinnyBlock& block) {
  constexpr int kWords = 8;
  int64_t k = 0;
  for (; k + kWords * Words::kSteps <= block.depth;
       k += kWords * Words::kSteps) {
    axpy_block<Words, T, kWords>(block, k);
  }
  for (; k < block.depth; k += Words::kSteps) {
    axpy_block<Words, T, 1>(block, k);
  }
}

template <class Words>
void skinny_dot(const SkinnyBlock& block) {
  with_operand_type<Words>(
      block.b_dtype, [&]<class T>(T*) { skinny_dot_type<Words, T>(block); });
}

template <class Words>
void skinny_axpy(const SkinnyBlock& block) {
  with_operand_type<Words>(
      block.b_dtype, [&]<class T>(T*) { skinny_axpy_type<Words, T>(block); });
}

}  // namespace neuron::host_kernels::NEURON_ISA_NAMESPACE

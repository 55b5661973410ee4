// The micro-kernel over packed panels.
#pragma once

#include "host_kernels/gemm_kernels.h"
#include "host_kernels/isa/finish.h"
#include "host_kernels/isa/words.h"

namespace neuron::host_kernels::NEURON_ISA_NAMESPACE {

#if NEURON_ISA >= 2
constexpr int kPanelRows = 14;
#elif NEURON_ISA == 1
constexpr int kPanelRows = 6;
#else
constexpr int kPanelRows = 4;
#endif
constexpr int kPanelVectors = 2;
constexpr int kPanelColumns = kPanelVectors * kLanes;
// pack.h lets only the last vector of a panel row run past its width.
static_assert(kPanelRows < kLanes || kPanelRows % kLanes == 0);

// kRows x (kVectors * kLanes) sums, all in registers.
template <class Words, int kRows, int kVectors>
void multiply_panel(
    const float* a,
    const float* b,
    int64_t words,
    float* sums,
    int64_t stride,
    bool accumulate) {
  F32 acc[kRows][kVectors];
#pragma GCC unroll 14
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      acc[r][v] = zero();
    }
  }
  for (int64_t k = 0; k < words; ++k) {
    F32 column[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      column[v] = load(b + v * kLanes);
    }
#pragma GCC unroll 14
    for (int r = 0; r < kRows; ++r) {
      const auto row = broadcast(a[r]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        acc[r][v] = Words::multiply_add(row, column[v], acc[r][v]);
      }
    }
    a += kPanelRows;
    b += kPanelColumns;
  }
#pragma GCC unroll 14
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      auto* out = sums + r * stride + v * kLanes;
      store(out, accumulate ? load(out) + acc[r][v] : acc[r][v]);
    }
  }
}

using PanelFunction =
    void (*)(const float*, const float*, int64_t, float*, int64_t, bool);

template <class Words, int kVectors, int... kRows>
PanelFunction choose_panel(int rows) {
  constexpr PanelFunction table[] = {multiply_panel<Words, kRows, kVectors>...};
  return table[rows - 1];
}

template <class Words, int kVectors>
PanelFunction panel_for(int rows) {
#if NEURON_ISA >= 2
  return choose_panel<
      Words,
      kVectors,
      1,
      2,
      3,
      4,
      5,
      6,
      7,
      8,
      9,
      10,
      11,
      12,
      13,
      14>(rows);
#elif NEURON_ISA == 1
  return choose_panel<Words, kVectors, 1, 2, 3, 4, 5, 6>(rows);
#else
  return choose_panel<Words, kVectors, 1, 2, 3, 4>(rows);
#endif
}

template <class Words>
void multiply(
    const PackedBlock& block,
    const Tile& tile,
    bool accumulate,
    const Epilogue* epilogue) {
  // A sum that is finished at once never leaves the first-level cache.
  alignas(64) float local[kPanelRows * kPanelColumns];
  const bool at_once = !accumulate && epilogue != nullptr;
  for (int64_t j = 0; j < tile.columns; j += kPanelColumns) {
    const auto columns =
        tile.columns - j < kPanelColumns ? tile.columns - j : kPanelColumns;
    const auto* b = block.b + j / kPanelColumns * block.b_panel_stride;
    for (int64_t i = 0; i < tile.rows; i += kPanelRows) {
      const auto rows = tile.rows - i < kPanelRows ? tile.rows - i : kPanelRows;
      const auto panel = columns <= kLanes ? panel_for<Words, 1>(rows)
                                           : panel_for<Words, 2>(rows);
      Tile part{
          at_once ? local : tile.sums + i * tile.stride + j,
          at_once ? kPanelColumns : tile.stride,
          tile.row + i,
          tile.column + j,
          rows,
          columns};
      panel(
          block.a + i / kPanelRows * block.a_panel_stride,
          b,
          block.words,
          part.sums,
          part.stride,
          accumulate);
      if (epilogue != nullptr) {
        finish(part, *epilogue);
      }
    }
  }
}

}  // namespace neuron::host_kernels::NEURON_ISA_NAMESPACE

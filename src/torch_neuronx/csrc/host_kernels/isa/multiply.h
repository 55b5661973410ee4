// The micro-kernel over packed panels, and the epilogue.
#pragma once

#include "host_kernels/gemm_kernels.h"
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

template <class Out, class Addend>
void finish_row(
    const float* sums,
    int64_t count,
    float scale,
    const float* column_scale,
    Out* out,
    const Addend* addend,
    float beta) {
  for (int64_t j = 0; j < count; j += kLanes) {
    const auto left = count - j;
    auto value = load_some(sums + j, left) * broadcast(scale);
    if (column_scale != nullptr) {
      value = value * load_some(column_scale + j, left);
    }
    if (addend != nullptr) {
      value = fma(load_some(addend + j, left), broadcast(beta), value);
    }
    store_some(out + j, value, left);
  }
}

template <class Out, class Addend>
void finish_typed(const Tile& tile, const Epilogue& e) {
  constexpr int64_t kColumns = 64;
  for (int64_t r = 0; r < tile.rows; ++r) {
    const auto row = tile.row + r;
    const auto* sums = tile.sums + r * tile.stride;
    const float scale =
        e.row_scale == nullptr ? e.alpha : e.alpha * e.row_scale[row];
    auto* out = static_cast<Out*>(e.out) + row * e.out_row_stride +
                tile.column * e.out_column_stride;
    const auto* addend = e.addend == nullptr || e.beta == 0.0f
                             ? nullptr
                             : static_cast<const Addend*>(e.addend) +
                                   row * e.addend_row_stride +
                                   tile.column * e.addend_column_stride;
    const auto* column_scale =
        e.column_scale == nullptr ? nullptr : e.column_scale + tile.column;
    if (e.out_column_stride == 1 &&
        (addend == nullptr || e.addend_column_stride == 1)) {
      finish_row(sums, tile.columns, scale, column_scale, out, addend, e.beta);
      continue;
    }
    for (int64_t j = 0; j < tile.columns; j += kColumns) {
      const auto count =
          tile.columns - j < kColumns ? tile.columns - j : kColumns;
      Out finished[kColumns];
      Addend added[kColumns];
      if (addend != nullptr) {
        for (int64_t c = 0; c < count; ++c) {
          added[c] = addend[(j + c) * e.addend_column_stride];
        }
      }
      finish_row<Out, Addend>(
          sums + j,
          count,
          scale,
          column_scale == nullptr ? nullptr : column_scale + j,
          finished,
          addend == nullptr ? nullptr : added,
          e.beta);
      for (int64_t c = 0; c < count; ++c) {
        out[(j + c) * e.out_column_stride] = finished[c];
      }
    }
  }
}

template <class Out>
void finish_out(const Tile& tile, const Epilogue& e) {
  if (e.addend == nullptr || e.addend_dtype == e.out_dtype) {
    return finish_typed<Out, Out>(tile, e);
  }
  switch (e.addend_dtype) {
    case c10::ScalarType::BFloat16:
      return finish_typed<Out, c10::BFloat16>(tile, e);
    case c10::ScalarType::Half:
      return finish_typed<Out, c10::Half>(tile, e);
    default:
      return finish_typed<Out, float>(tile, e);
  }
}

inline void finish(const Tile& tile, const Epilogue& e) {
  switch (e.out_dtype) {
    case c10::ScalarType::BFloat16:
      return finish_out<c10::BFloat16>(tile, e);
    case c10::ScalarType::Half:
      return finish_out<c10::Half>(tile, e);
    default:
      return finish_out<float>(tile, e);
  }
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

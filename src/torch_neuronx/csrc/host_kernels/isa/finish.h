// The epilogue: fp32 sums to the output, rounded once.
#pragma once

#include "host_kernels/gemm_kernels.h"
#include "host_kernels/isa/vec.h"

namespace neuron::host_kernels::NEURON_ISA_NAMESPACE {

// addend_step is 0 for one value that holds for the whole row.
template <class Out, class Addend>
void finish_row(
    const float* sums,
    int64_t count,
    float scale,
    const float* column_scale,
    Out* out,
    const Addend* addend,
    int64_t addend_step,
    float beta) {
  const auto same = broadcast(
      addend != nullptr && addend_step == 0 ? static_cast<float>(*addend) : 0);
  for (int64_t j = 0; j < count; j += kLanes) {
    const auto left = count - j;
    auto value = load_some(sums + j, left) * broadcast(scale);
    if (column_scale != nullptr) {
      value = value * load_some(column_scale + j, left);
    }
    if (addend != nullptr) {
      const auto added = addend_step == 0 ? same : load_some(addend + j, left);
      value = fma(added, broadcast(beta), value);
    }
    store_some(out + j, value, left);
  }
}

// Output columns are contiguous, and nothing is added.
template <class Out>
void finish_transposed(const Tile& tile, const Epilogue& e) {
  for (int64_t r = 0; r < tile.rows; r += kLanes) {
    const auto rows = tile.rows - r < kLanes ? tile.rows - r : kLanes;
    for (int64_t j = 0; j < tile.columns; j += kLanes) {
      const auto left = tile.columns - j;
      const auto column_scale =
          e.column_scale == nullptr
              ? broadcast(1.0f)
              : load_some(e.column_scale + tile.column + j, left);
      F32 block[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        if (i >= rows) {
          block[i] = zero();
          continue;
        }
        const float scale = e.row_scale == nullptr
                                ? e.alpha
                                : e.alpha * e.row_scale[tile.row + r + i];
        block[i] = load_some(tile.sums + (r + i) * tile.stride + j, left) *
                   broadcast(scale) * column_scale;
      }
      transpose(block);
      for (int i = 0; i < kLanes && i < left; ++i) {
        auto* out = static_cast<Out*>(e.out) + tile.row + r +
                    (tile.column + j + i) * e.out_column_stride;
        store_some(out, block[i], rows);
      }
    }
  }
}

template <class Out, class Addend>
void finish_typed(const Tile& tile, const Epilogue& e) {
  const bool adds = e.addend != nullptr && e.beta != 0.0f;
  if (e.out_row_stride == 1 && e.out_column_stride != 1 && !adds) {
    return finish_transposed<Out>(tile, e);
  }
  constexpr int64_t kColumns = 64;
  for (int64_t r = 0; r < tile.rows; ++r) {
    const auto row = tile.row + r;
    const auto* sums = tile.sums + r * tile.stride;
    const float scale =
        e.row_scale == nullptr ? e.alpha : e.alpha * e.row_scale[row];
    auto* out = static_cast<Out*>(e.out) + row * e.out_row_stride +
                tile.column * e.out_column_stride;
    const auto* addend = !adds ? nullptr
                               : static_cast<const Addend*>(e.addend) +
                                     row * e.addend_row_stride +
                                     tile.column * e.addend_column_stride;
    const auto* column_scale =
        e.column_scale == nullptr ? nullptr : e.column_scale + tile.column;
    const bool plain_addend =
        e.addend_column_stride == 1 || e.addend_column_stride == 0;
    if (e.out_column_stride == 1 && (addend == nullptr || plain_addend)) {
      finish_row(
          sums,
          tile.columns,
          scale,
          column_scale,
          out,
          addend,
          e.addend_column_stride,
          e.beta);
      continue;
    }
    for (int64_t j = 0; j < tile.columns; j += kColumns) {
      const auto count =
          tile.columns - j < kColumns ? tile.columns - j : kColumns;
      Out finished[kColumns];
      Addend added[kColumns];
      for (int64_t c = 0; addend != nullptr && c < count; ++c) {
        added[c] = addend[(j + c) * e.addend_column_stride];
      }
      finish_row<Out, Addend>(
          sums + j,
          count,
          scale,
          column_scale == nullptr ? nullptr : column_scale + j,
          finished,
          addend == nullptr ? nullptr : added,
          1,
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

}  // namespace neuron::host_kernels::NEURON_ISA_NAMESPACE

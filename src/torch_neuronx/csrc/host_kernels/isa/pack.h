// Packs a block of a matrix into panels for the micro-kernel, converting it on
// the way.
#pragma once

#include "host_kernels/gemm_kernels.h"
#include "host_kernels/isa/words.h"

namespace neuron::host_kernels::NEURON_ISA_NAMESPACE {

// A vector store may run past the panel's width. The words it spoils are
// written later: panels are filled with ascending k, and end with a margin.
template <class Words, class T>
void pack_contiguous_rows(
    const PackSource& source, int width, float* panels, int64_t panel_stride) {
  const auto* data = static_cast<const T*>(source.data);
  for (int64_t k = 0; k < source.depth; k += Words::kSteps) {
    const auto* row = data + k * source.depth_stride;
    const auto* next =
        k + 1 < source.depth ? row + source.depth_stride : nullptr;
    auto* out = panels + k / Words::kSteps * width;
    for (int64_t p = 0; p < source.rows; p += width, out += panel_stride) {
      for (int lane = 0; lane < width; lane += kLanes) {
        const auto at = p + lane;
        const auto* beyond = next == nullptr ? nullptr : next + at;
        store(out + lane, Words::across(row + at, beyond, source.rows - at));
      }
    }
  }
}

template <class Words, class T>
void pack_contiguous_depth(
    const PackSource& source, int width, float* panels, int64_t panel_stride) {
  const auto* data = static_cast<const T*>(source.data);
  constexpr int64_t kStepsPerVector = kLanes * Words::kSteps;
  for (int64_t p = 0; p < source.rows; p += width, panels += panel_stride) {
    for (int lane = 0; lane < width; lane += kLanes) {
      const auto* group = data + (p + lane) * source.row_stride;
      const auto rows = source.rows - p - lane;
      for (int64_t k = 0; k < source.depth; k += kStepsPerVector) {
        F32 block[kLanes];
        for (int r = 0; r < kLanes; ++r) {
          block[r] =
              r < rows && lane + r < width
                  ? Words::along(
                        group + r * source.row_stride + k, source.depth - k)
                  : zero();
        }
        transpose(block);
        const auto words =
            (source.depth - k + Words::kSteps - 1) / Words::kSteps;
        auto* out = panels + k / Words::kSteps * width + lane;
        for (int i = 0; i < kLanes && i < words; ++i) {
          store(out + i * width, block[i]);
        }
      }
    }
  }
}

// Any strides, through a contiguous copy of one k (or pair) at a time.
template <class Words, class T>
void pack_strided(
    const PackSource& source, int width, float* panels, int64_t panel_stride) {
  constexpr int64_t kRows = 256;
  T copy[Words::kSteps][kRows];
  const auto* data = static_cast<const T*>(source.data);
  const auto rows_at_once = kRows / width * width;
  for (int64_t p = 0; p < source.rows; p += rows_at_once) {
    const auto rows =
        source.rows - p < rows_at_once ? source.rows - p : rows_at_once;
    for (int64_t k = 0; k < source.depth; k += Words::kSteps) {
      const int64_t steps =
          source.depth - k < Words::kSteps ? source.depth - k : Words::kSteps;
      for (int64_t s = 0; s < steps; ++s) {
        const auto* from =
            data + p * source.row_stride + (k + s) * source.depth_stride;
        for (int64_t r = 0; r < rows; ++r) {
          copy[s][r] = from[r * source.row_stride];
        }
      }
      PackSource line{copy, source.dtype, 1, kRows, rows, steps};
      pack_contiguous_rows<Words, T>(
          line,
          width,
          panels + p / width * panel_stride + k / Words::kSteps * width,
          panel_stride);
    }
  }
}

template <class Words, class T>
void pack_type(
    const PackSource& source, int width, float* panels, int64_t panel_stride) {
  if (source.depth_stride == 1 && source.depth > 1) {
    pack_contiguous_depth<Words, T>(source, width, panels, panel_stride);
  } else if (source.row_stride == 1) {
    pack_contiguous_rows<Words, T>(source, width, panels, panel_stride);
  } else {
    pack_strided<Words, T>(source, width, panels, panel_stride);
  }
}

// Calls function with a null pointer to the element type of dtype, among those
// that Words can hold exactly.
template <class Words, class Function>
void with_operand_type(c10::ScalarType dtype, Function function) {
  switch (dtype) {
    case c10::ScalarType::BFloat16:
      return function(static_cast<c10::BFloat16*>(nullptr));
    case c10::ScalarType::Float8_e4m3fn:
      return function(static_cast<c10::Float8_e4m3fn*>(nullptr));
    case c10::ScalarType::Float8_e5m2:
      return function(static_cast<c10::Float8_e5m2*>(nullptr));
    case c10::ScalarType::Char:
      return function(static_cast<int8_t*>(nullptr));
    default:
      break;
  }
  if constexpr (Words::kSteps == 1) {
    if (dtype == c10::ScalarType::Half) {
      return function(static_cast<c10::Half*>(nullptr));
    }
    return function(static_cast<float*>(nullptr));
  }
}

template <class Words>
void pack(
    const PackSource& source, int width, float* panels, int64_t panel_stride) {
  with_operand_type<Words>(source.dtype, [&]<class T>(T*) {
    pack_type<Words, T>(source, width, panels, panel_stride);
  });
}

template <class Words, class T>
void copy_row(const T* row, int64_t depth, float* words, int64_t stride) {
  constexpr int64_t kStep = kLanes * Words::kSteps;
  int64_t at = 0;
  for (int64_t k = 0; k < depth; k += kStep, at += kLanes) {
    store(words + at, Words::along(row + k, depth - k));
  }
  for (; at + kLanes <= stride; at += kLanes) {
    store(words + at, zero());
  }
}

template <class Words>
void copy_rows(const PackSource& source, float* words, int64_t stride) {
  with_operand_type<Words>(source.dtype, [&]<class T>(T*) {
    const auto* data = static_cast<const T*>(source.data);
    for (int64_t r = 0; r < source.rows; ++r) {
      const auto* row = data + r * source.row_stride;
      auto* out = words + r * stride;
      if (source.depth_stride == 1) {
        copy_row<Words>(row, source.depth, out, stride);
        continue;
      }
      constexpr int64_t kChunk = 256;
      T chunk[kChunk];
      for (int64_t k = 0; k < source.depth; k += kChunk) {
        const auto count =
            source.depth - k < kChunk ? source.depth - k : kChunk;
        for (int64_t i = 0; i < count; ++i) {
          chunk[i] = row[(k + i) * source.depth_stride];
        }
        const auto at = k / Words::kSteps;
        copy_row<Words>(chunk, count, out + at, stride - at);
      }
    }
  });
}

}  // namespace neuron::host_kernels::NEURON_ISA_NAMESPACE

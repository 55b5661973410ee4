// Kernels along the rows of a contiguous matrix: softmax, layer norm,
// reductions. Each call handles rows [begin, end) on one thread; fp16 and
// bf16 are computed in fp32 and rounded once.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace neuron::host_kernels {

enum class RowReduction : uint8_t { sum, mean, max, end };

struct LayerNorm {
  const void* in;
  const void* weight;  // may be null
  const void* bias;    // may be null
  void* out;
  void* mean;
  void* rstd;
  double epsilon;
};

// Gradients of the weight and the bias are added to fp32 rows of `columns`.
struct LayerNormBackward {
  const void* gradient;
  const void* in;
  const void* mean;
  const void* rstd;
  const void* weight;      // may be null
  void* in_gradient;       // may be null
  float* weight_gradient;  // may be null
  float* bias_gradient;    // may be null
};

struct RowKernels {
  using Map = void (*)(
      void* out, const void* in, int64_t begin, int64_t end, int64_t columns);
  using Map2 = void (*)(
      void* out,
      const void* a,
      const void* b,
      int64_t begin,
      int64_t end,
      int64_t columns);
  Map softmax = nullptr;
  Map log_softmax = nullptr;
  Map2 softmax_backward = nullptr;      // (gradient, output)
  Map2 log_softmax_backward = nullptr;  // (gradient, output)
  Map reduce[static_cast<int>(RowReduction::end)] = {};
  // Sums of columns [begin, end) over all rows; fp32 only.
  void (*column_sum)(
      void* out,
      const void* in,
      int64_t rows,
      int64_t columns,
      int64_t begin,
      int64_t end) = nullptr;
  void (*layer_norm)(
      const LayerNorm& norm,
      int64_t begin,
      int64_t end,
      int64_t columns) = nullptr;
  void (*layer_norm_backward)(
      const LayerNormBackward& norm,
      int64_t begin,
      int64_t end,
      int64_t columns) = nullptr;
};

// The kernels of fp32, bf16 or fp16; null for another dtype.
const RowKernels* row_kernels(c10::ScalarType dtype);

// fp32 scratch of this thread; `slot` tells buffers in use at once apart.
constexpr int kRowBuffers = 4;
float* row_buffer(int slot, int64_t count);

namespace detail {
struct RowTable {
  RowKernels fp32;
  RowKernels bf16;
  RowKernels fp16;
};
const RowTable& rows_baseline();
const RowTable& rows_avx2();
const RowTable& rows_avx512();
}  // namespace detail

}  // namespace neuron::host_kernels

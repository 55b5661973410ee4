// Matrix products of low-precision and fp32 operands with fp32 sums and one
// rounding at the end.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace neuron::host_kernels {

// Element (i, j) of matrix b is at data[b * batch_stride + i * row_stride +
// j * column_stride]. Strides count elements and may be zero.
struct MatrixIn {
  const void* data = nullptr;
  c10::ScalarType dtype = c10::ScalarType::Float;
  int64_t batch_stride = 0;
  int64_t row_stride = 0;
  int64_t column_stride = 0;
};

struct MatrixOut {
  void* data = nullptr;
  c10::ScalarType dtype = c10::ScalarType::Float;
  int64_t batch_stride = 0;
  int64_t row_stride = 0;
  int64_t column_stride = 0;
};

// out[m, n] = alpha * row_scale[m] * column_scale[n] * sum_k a[m, k] * b[k, n]
//             + beta * addend[m, n]
// for each of `batch` products. A bias is an addend with row_stride 0 and beta
// 1; the addend may be `out` itself and is not read when beta is 0 (or data is
// null). Scales are fp32 and shared by the batch.
struct GemmArgs {
  int64_t batch = 1;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  MatrixIn a;
  MatrixIn b;
  MatrixOut out;
  MatrixIn addend;
  float alpha = 1.0f;
  float beta = 0.0f;
  const float* row_scale = nullptr;
  const float* column_scale = nullptr;
};

// Operands: float, bfloat16, half, float8_e4m3fn, float8_e5m2, int8 in any
// mixture. Output and addend: float, bfloat16, half.
bool gemm_takes(c10::ScalarType operand);
bool gemm_gives(c10::ScalarType output);

// Runs on at::get_num_threads() threads, or on the caller's alone inside a
// parallel region. Throws c10::ValueError for a dtype that it does not take.
// The result does not depend on the number of threads, unless the output is
// small and k long enough for the sum itself to be cut.
void gemm(const GemmArgs& args);

}  // namespace neuron::host_kernels

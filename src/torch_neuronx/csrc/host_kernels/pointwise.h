// Elementwise loops over contiguous memory, one table per instruction set.
// Values are those of ATen's CPU kernels: fp16 and bf16 are computed in fp32
// and rounded once, and the functions come from the same libraries.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace neuron::host_kernels {

enum class Unary : uint8_t {
  neg,
  abs,
  exp,
  log,
  sqrt,
  rsqrt,
  reciprocal,
  relu,
  gelu,
  gelu_tanh,
  silu,
  sigmoid,
  tanh,
  square,
  end,
};

// The backward ones take (gradient, saved value).
enum class Binary : uint8_t {
  add,
  add_scaled,  // a + parameter * b
  subtract,
  multiply,
  divide,
  threshold_backward,  // parameter is the threshold
  gelu_backward,
  gelu_tanh_backward,
  silu_backward,
  sigmoid_backward,
  tanh_backward,
  equal,  // from here on the output is bool
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  end,
};

constexpr bool is_comparison(Binary op) { return op >= Binary::equal; }

enum class Ternary : uint8_t {
  addcmul,  // a + parameter * b * c
  addcdiv,  // a + parameter * b / c
  lerp,     // from a to b by the parameter; c is not read
  end,
};

using UnaryLoop = void (*)(void* out, const void* in, int64_t count);

struct BinaryLoops {
  using Loop = void (*)(
      void* out, const void* a, const void* b, int64_t count, double parameter);
  Loop both = nullptr;
  // One operand is a single value of the type that the dtype computes in:
  // float for fp16 and bf16, otherwise the dtype itself.
  Loop left_value = nullptr;
  Loop right_value = nullptr;
};

using TernaryLoop = void (*)(
    void* out,
    const void* a,
    const void* b,
    const void* c,
    int64_t count,
    double parameter);

using CastLoop = void (*)(void* out, const void* in, int64_t count);

// Null (or loops that are null) where there is no kernel.
UnaryLoop unary_loop(Unary op, c10::ScalarType dtype);
const BinaryLoops& binary_loops(Binary op, c10::ScalarType dtype);
TernaryLoop ternary_loop(Ternary op, c10::ScalarType dtype);
CastLoop cast_loop(c10::ScalarType from, c10::ScalarType to);

// The type that `dtype` computes in, for one element read at `data`.
union ComputeValue {
  float as_float;
  double as_double;
  int64_t as_int64;
  int32_t as_int32;
};
ComputeValue widen(const void* data, c10::ScalarType dtype);

// One operand of a binary loop over rows x columns.
struct Operand {
  const void* data;
  int64_t row_bytes;  // from one row to the next; 0 repeats the row
  bool one_per_row;   // a single element stands for the row
};

// out[row][column] = a op b; rows go to several threads when there is enough.
void binary_rows(
    const BinaryLoops& loops,
    c10::ScalarType dtype,
    int64_t out_itemsize,
    void* out,
    const Operand& a,
    const Operand& b,
    int64_t rows,
    int64_t columns,
    double parameter);

}  // namespace neuron::host_kernels

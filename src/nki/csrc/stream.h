// The encoded program: a stream of 64-bit words, one record per instruction.
// Written by nki/simulator/encode.py; both sides must agree on the order.
#pragma once

#include <cstdint>
#include <cstring>

namespace neuron::nki {

enum class Opcode : int64_t {
  copy = 0,     // raw bytes of equal dtypes
  convert = 1,  // through fp32
  fill = 2,     // number
  tensor_tensor = 3,
  tensor_scalar = 4,  // (data op0 operand0) op1 operand1
  scalar_tensor_tensor = 5,
  tensor_scalar_reduce = 6,
  activation = 7,
  reduce = 8,
  matmul = 9,
  transpose = 10,
  affine_select = 11,
  select = 12,  // where(predicate, on_true, on_false)
  scan = 13,
  range_select = 14,
  fill_bytes = 15,  // fresh memory
};

enum class Type : int64_t {
  float32 = 0,
  bfloat16 = 1,
  float16 = 2,
  float8_e4m3 = 3,
  float8_e5m2 = 4,
  int32 = 5,
  uint32 = 6,
  uint8 = 7,
  int8 = 8,
  int16 = 9,
  uint16 = 10,
  tfloat32 = 11,
  float8_e4m3fn = 12,
};

enum class Alu : int64_t {
  none = -1,
  add = 0,
  subtract = 1,
  multiply = 2,
  maximum = 3,
  minimum = 4,
  divide = 5,
  equal = 6,
  not_equal = 7,
  greater = 8,
  greater_equal = 9,
  less = 10,
  less_equal = 11,
  logical_and = 12,
  logical_or = 13,
  abs = 14,
  square = 15,
  relu = 16,
  rsqrt = 17,
  reciprocal = 18,
  bypass = 19,
  power = 20,
};

enum class Function : int64_t {
  copy = 0,
  square = 1,
  sigmoid = 2,
  relu = 3,
  silu = 4,
  tanh = 5,
  exp = 6,
  sqrt = 7,
  rsqrt = 8,
  reciprocal = 9,
  abs = 10,
  gelu_apprx_sigmoid = 11,
  gelu_apprx_tanh = 12,
  log = 13,
  sign = 14,
};

constexpr int max_dims = 5;  // partition and four free dimensions
constexpr int64_t absent = -1;
constexpr int64_t immediate = -2;

struct Operand {
  int64_t base;  // index of the base pointer, `absent` or `immediate`
  int64_t dtype;
  int64_t offset;            // bytes; the bits of a double for an immediate
  int64_t stride[max_dims];  // bytes
  int64_t reg;               // register that is added, or -1
  int64_t reg_stride;        // bytes per unit of the register
  int64_t max_offset;        // largest legal offset in bytes

  Type type() const { return static_cast<Type>(dtype); }
  bool present() const { return base != absent; }
  double number() const {
    double value;
    std::memcpy(&value, &offset, sizeof value);
    return value;
  }
};

struct Record {
  int64_t opcode;
  int64_t length;  // words, operands included
  int64_t index;   // instruction of the program
  int64_t dims[max_dims];
  int64_t attribute[8];
  int64_t number[4];   // bits of doubles
  Operand operand[1];  // as many as the instruction has

  double constant(int i) const {
    double value;
    std::memcpy(&value, &number[i], sizeof value);
    return value;
  }
};

using Sgemm = void (*)(
    int order,
    int trans_a,
    int trans_b,
    int64_t m,
    int64_t n,
    int64_t k,
    float alpha,
    const float* a,
    int64_t lda,
    const float* b,
    int64_t ldb,
    float beta,
    float* c,
    int64_t ldc);

// What a record works on. Nothing here is owned.
struct Machine {
  char* const* bases;
  const int64_t* registers;
  float* vector_accumulator;  // one per partition
  float* scalar_accumulator;
  Sgemm sgemm;  // null: the portable product is used
};

}  // namespace neuron::nki

// What each instruction set provides to pointwise.cpp.
#pragma once

#include "host_kernels/pointwise.h"

namespace neuron::host_kernels {

constexpr int kPointwiseDtypes = 8;

// The column of a dtype in the tables, -1 if it has none.
constexpr int column_of(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Float:
      return 0;
    case c10::ScalarType::BFloat16:
      return 1;
    case c10::ScalarType::Half:
      return 2;
    case c10::ScalarType::Double:
      return 3;
    case c10::ScalarType::Long:
      return 4;
    case c10::ScalarType::Int:
      return 5;
    case c10::ScalarType::Bool:
      return 6;
    case c10::ScalarType::Byte:
      return 7;
    default:
      return -1;
  }
}

struct PointwiseTable {
  UnaryLoop unary[static_cast<int>(Unary::end)][kPointwiseDtypes] = {};
  BinaryLoops binary[static_cast<int>(Binary::end)][kPointwiseDtypes] = {};
  TernaryLoop ternary[static_cast<int>(Ternary::end)][kPointwiseDtypes] = {};
  CastLoop cast[kPointwiseDtypes][kPointwiseDtypes] = {};
};

const PointwiseTable& pointwise_baseline();
const PointwiseTable& pointwise_avx2();
const PointwiseTable& pointwise_avx512();

}  // namespace neuron::host_kernels

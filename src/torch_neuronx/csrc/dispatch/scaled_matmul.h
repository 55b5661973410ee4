// What products of scaled operands share.
#pragma once

#include "dispatch/matmul.h"
#include "host_kernels/gemm.h"

namespace neuron {

using OptionalTensor = std::optional<at::Tensor>;

inline bool is_given(const OptionalTensor& tensor) {
  return tensor.has_value() && tensor->defined();
}

inline bool is_fp8(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat8_e4m3fn ||
         tensor.scalar_type() == at::kFloat8_e5m2;
}

inline host_kernels::MatrixIn matrix(const at::Tensor& tensor) {
  return {
      input(tensor),
      tensor.scalar_type(),
      0,
      tensor.stride(-2),
      tensor.stride(-1)};
}

}  // namespace neuron

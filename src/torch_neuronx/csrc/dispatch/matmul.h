// Matrix products of strided operands, for the ops that are made of them.
#pragma once

#include "dispatch/direct.h"

namespace neuron {

// A strided tensor of this device that a product can read where it lies.
bool is_matrix(const at::Tensor& tensor, int64_t dims);

// Whether there is a kernel for two operands of this dtype.
bool multiplies(c10::ScalarType dtype);

// out = alpha * a @ b + beta * addend over the last two dims; 3-dim operands
// are batches. `addend` may be undefined, `out` itself, or broadcast through
// zero strides after expanding. All share one dtype; `out` is written whole.
void launch_matmul(
    const OpRecord& record,
    const at::Tensor& out,
    const at::Tensor& a,
    const at::Tensor& b,
    const at::Tensor& addend,
    double alpha,
    double beta);

// out[row] = self[row] @ weight^T + bias, over the last dim of a contiguous
// input; `bias` may be undefined.
void launch_linear(
    const OpRecord& record,
    const at::Tensor& out,
    const at::Tensor& self,
    const at::Tensor& weight,
    const at::Tensor& bias);

}  // namespace neuron

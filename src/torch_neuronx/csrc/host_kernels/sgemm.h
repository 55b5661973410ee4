// fp32 matrix products by the host's BLAS, as PyTorch's CPU device does them.
#pragma once

#include "host_kernels/gemm.h"

namespace neuron::host_kernels {

// False where PyTorch was built without a BLAS that we can reach.
bool has_sgemm();

// All matrices fp32; `out` must have unit row or column stride and no
// overlap. Operands that BLAS cannot read where they lie are packed.
void sgemm(const GemmArgs& args);

}  // namespace neuron::host_kernels

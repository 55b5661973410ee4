// All kernels that exist once per instruction set.
#pragma once

#include "host_kernels/attention_kernels.h"
#include "host_kernels/depthwise_kernels.h"
#include "host_kernels/gemm_kernels.h"
#include "host_kernels/optimizer_kernels.h"

namespace neuron::host_kernels {

struct KernelTable {
  GemmKernels gemm;
  AttentionKernels attention;
  OptimizerKernels optimizer;
  DepthwiseKernels depthwise;
};

// The table of host_isa().
const KernelTable& kernel_table();

}  // namespace neuron::host_kernels

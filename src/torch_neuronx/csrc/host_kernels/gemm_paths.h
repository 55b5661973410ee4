// The two ways to run a product, chosen by gemm.cpp. Not for other folders.
#pragma once

#include "host_kernels/gemm.h"
#include "host_kernels/gemm_kernels.h"

namespace neuron::host_kernels {

// Packs tiles of both operands; for any shape and stride.
void gemm_tiles(
    const GemmArgs& args,
    const GemmKernels& kernels,
    const PanelKernels& panels);

// Streams b once as it lies; b must be contiguous along rows or columns.
void gemm_skinny(
    const GemmArgs& args,
    const GemmKernels& kernels,
    const PanelKernels& panels);

Epilogue epilogue_of(const GemmArgs& args, int64_t batch);

// Whether two values of dtype can share a word of bf16 pairs.
bool exact_in_bf16(c10::ScalarType dtype);

// Pointer to element `offset` of an array of dtype.
const void* advance(const void* data, c10::ScalarType dtype, int64_t offset);

}  // namespace neuron::host_kernels

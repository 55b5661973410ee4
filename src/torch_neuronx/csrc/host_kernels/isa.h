// Which instruction set the host kernels use.
#pragma once

namespace neuron::host_kernels {

// Each level includes the ones before it.
enum class Isa { baseline, avx2, avx512, avx512_bf16 };

// The best level of this host, or the lower one that NEURON_HOST_ISA names.
// Throws c10::ValueError when it names one that is unknown or not available.
Isa host_isa();

const char* name(Isa isa);

}  // namespace neuron::host_kernels

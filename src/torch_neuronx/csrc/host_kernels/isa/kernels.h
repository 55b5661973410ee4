// Every kernel of one ISA, as one table. Included by each ISA's source file.
#pragma once

#include "host_kernels/isa/multiply.h"
#include "host_kernels/isa/pack.h"
#include "host_kernels/isa/skinny.h"

namespace neuron::host_kernels::NEURON_ISA_NAMESPACE {

template <class Words>
constexpr PanelKernels panel_kernels() {
  return {
      Words::kSteps,
      pack<Words>,
      copy_rows<Words>,
      multiply<Words>,
      skinny_dot<Words>,
      skinny_axpy<Words>};
}

extern const GemmKernels gemm_kernels;
const GemmKernels gemm_kernels = {
    kLanes,
    kPanelRows,
    kPanelColumns,
    panel_kernels<Fp32Words>(),
#if NEURON_ISA == 3
    panel_kernels<Bf16PairWords>(),
#else
    PanelKernels{},
#endif
    finish};

}  // namespace neuron::host_kernels::NEURON_ISA_NAMESPACE

// Every kernel of one ISA, as one table. Included by each ISA's source file.
#pragma once

#include "host_kernels/isa/attention.h"
#include "host_kernels/isa/depthwise.h"
#include "host_kernels/isa/multiply.h"
#include "host_kernels/isa/optimizer.h"
#include "host_kernels/isa/pack.h"
#include "host_kernels/isa/skinny.h"
#include "host_kernels/kernel_table.h"

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

extern const KernelTable kernels;
const KernelTable kernels = {
    {kLanes,
     kPanelRows,
     kPanelColumns,
     panel_kernels<Fp32Words>(),
#if NEURON_ISA == 3
     panel_kernels<Bf16PairWords>(),
#else
     PanelKernels{},
#endif
     finish},
    {attention_kernels<Fp32Words>(),
#if NEURON_ISA == 3
     attention_kernels<Bf16PairWords>(),
#else
     AttentionWordKernels{},
#endif
     add_mask,
     hide_keys,
     softmax_row},
    {adam, sgd, sum_of_squares, scale},
    {correlate, correlate_gradient, round}};

}  // namespace neuron::host_kernels::NEURON_ISA_NAMESPACE

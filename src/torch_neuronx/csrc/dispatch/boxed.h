// The path of every op without a kernel of its own.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/stack.h>

namespace neuron {

// Runs `op` by its CPU kernel on aliases: values, checks and errors are the
// CPU's, memory and device are ours.
void run_boxed(
    const c10::OperatorHandle& op,
    c10::DispatchKeySet keys,
    torch::jit::Stack* stack);

} // namespace neuron

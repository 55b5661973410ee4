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

// Gives every op that has a CPU kernel, and none of ours, the boxed path under
// its own name. Without this ATen would reach some ops through composites
// made for devices that lack them, with other strides and roundings than the
// CPU's. Called once, after all kernels of ours are registered.
void register_remaining_ops();

}  // namespace neuron

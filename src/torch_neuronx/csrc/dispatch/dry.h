// What the dry driver does where values would be needed: it has none.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string>

#include "dispatch/op_record.h"
#include "runtime/device.h"

namespace neuron::dry {

enum class Needs { value, size };

// Asks what the user supplies for `op`; throws when that is nothing.
void set_supply_hook(double (*hook)(const std::string& op, Needs needs));
double supplied(const OpRecord& op, Needs needs);

// Whether the shape of the op's results, or its result, depends on values.
bool is_data_dependent(const OpRecord& op);

// Whether the CPU's kernel saves no batch statistics where the meta kernel says
// that it does: batch norm with the running ones. `first` is the place of the
// first argument on the stack.
bool drops_statistics(
    const OpRecord& op, const std::vector<c10::IValue>& stack, size_t first);

// The metadata of `tensor` alone, as a meta tensor.
at::Tensor without_memory(const at::Tensor& tensor);
// A CPU tensor of this metadata with nothing behind it, for code that asks
// the CPU for a decision.
at::Tensor described_on_cpu(const at::Tensor& tensor);

// One index per dim of a boolean mask, of as many entries as are supplied.
std::vector<at::Tensor> indices_of_mask(
    const OpRecord& op, const at::Tensor& mask);

}  // namespace neuron::dry

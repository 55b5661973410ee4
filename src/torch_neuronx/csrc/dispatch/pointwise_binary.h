// How two operands of an elementwise op line up, for its direct kernel.
#pragma once

#include "dispatch/direct.h"
#include "host_kernels/pointwise.h"

namespace neuron {

struct BinaryPlan {
  const host_kernels::BinaryLoops* loops = nullptr;
  // Indexed by operand; `value` stands for a CPU number.
  const at::Tensor* tensor[2] = {nullptr, nullptr};
  host_kernels::ComputeValue value{};
  int value_at = -1;
  host_kernels::Operand operand[2] = {};
  const at::Tensor* shape = nullptr;  // whose sizes the output has
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  c10::ScalarType out_dtype = c10::ScalarType::Undefined;
  int64_t rows = 1;
  int64_t columns = 0;
};

// True when the direct kernel takes them: one dtype, contiguous, the same
// shape or a cheap broadcast, or a number of a dtype that does not promote.
bool plan_binary(
    BinaryPlan& plan,
    host_kernels::Binary kind,
    const at::Tensor& a,
    const at::Tensor& b);

bool plan_binary(
    BinaryPlan& plan,
    host_kernels::Binary kind,
    const at::Tensor& a,
    const at::Scalar& b);

// A number as the loops of `dtype` take it; `rounded`: to that dtype first.
host_kernels::ComputeValue compute_value(
    const at::Scalar& number, c10::ScalarType dtype, bool rounded);

// Whether `out` may receive the result.
bool fits_output(const BinaryPlan& plan, const at::Tensor& out);

void launch_binary(
    const OpRecord& record,
    const BinaryPlan& plan,
    const at::Tensor& out,
    double parameter);

}  // namespace neuron

#include <c10/core/Scalar.h>

#include "dispatch/pointwise_binary.h"
#include "host_kernels/parallel.h"

namespace neuron {
namespace {

using host_kernels::Binary;
using host_kernels::ComputeValue;

bool is_number(const at::Tensor& tensor) {
  return tensor.defined() && tensor.dim() == 0 && tensor.is_cpu() &&
         !tensor.is_conj() && !tensor.is_neg() &&
         tensor.layout() == at::kStrided;
}

// Sizes of `small` are the last ones of `big`, 1 wherever it has more.
bool is_suffix(at::IntArrayRef small, at::IntArrayRef big) {
  while (!small.empty() && small.front() == 1) {
    small = small.slice(1);
  }
  return small.size() <= big.size() &&
         small == big.slice(big.size() - small.size());
}

// The same sizes but for a 1 at the end of `small`.
bool is_column(at::IntArrayRef small, at::IntArrayRef big) {
  return small.size() == big.size() && small.back() == 1 &&
         small.slice(0, small.size() - 1) == big.slice(0, big.size() - 1);
}

// Lines `small` (operand `at`) up under the other, which has the output's
// shape.
bool line_up(BinaryPlan& plan, int at) {
  const auto& small = *plan.tensor[at];
  const auto& big = *plan.tensor[1 - at];
  const auto itemsize = static_cast<int64_t>(big.itemsize());
  plan.shape = &big;
  if (small.numel() == 1 && small.dim() <= big.dim()) {
    plan.columns = big.numel();
    plan.operand[at].one_per_row = true;
    return true;
  }
  if (small.dim() > big.dim() || small.dim() == 0) {
    return false;
  }
  if (is_suffix(small.sizes(), big.sizes())) {
    plan.columns = small.numel();
    plan.rows = big.numel() / plan.columns;
    plan.operand[1 - at].row_bytes = plan.columns * itemsize;
    return true;
  }
  if (is_column(small.sizes(), big.sizes())) {
    plan.columns = big.sizes().back();
    plan.rows = small.numel();
    plan.operand[1 - at].row_bytes = plan.columns * itemsize;
    plan.operand[at].row_bytes = itemsize;
    plan.operand[at].one_per_row = true;
    return true;
  }
  return false;
}

bool has_loops(const BinaryPlan& plan) { return plan.loops->both != nullptr; }

// `tensor` keeps its dtype beside a number of dtype `number`.
bool keeps_dtype(const at::Tensor& tensor, c10::ScalarType number) {
  if (c10::isFloatingType(number)) {
    return tensor.is_floating_point();
  }
  return c10::isIntegralType(number, /*includeBool=*/true);
}

bool plan_number(
    BinaryPlan& plan,
    Binary kind,
    const at::Tensor& tensor,
    int at,
    const at::Scalar& number) {
  if (tensor.numel() == 0 || !keeps_dtype(tensor, number.type())) {
    return false;
  }
  plan.dtype = tensor.scalar_type();
  plan.loops = &host_kernels::binary_loops(kind, plan.dtype);
  if (!has_loops(plan) ||
      (at == 0 ? plan.loops->left_value : plan.loops->right_value) == nullptr) {
    return false;
  }
  const bool comparison = host_kernels::is_comparison(kind);
  // On the CPU, fp16 and bf16 multiply and divide by the number in fp32.
  const bool exact = kind == Binary::multiply || kind == Binary::divide;
  plan.value = compute_value(number, plan.dtype, /*rounded=*/!exact);
  plan.value_at = at;
  plan.tensor[1 - at] = &tensor;
  plan.shape = &tensor;
  plan.columns = tensor.numel();
  plan.out_dtype = comparison ? at::kBool : plan.dtype;
  return true;
}

at::Scalar number_in(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case c10::ScalarType::Double:
      return *tensor.const_data_ptr<double>();
    case c10::ScalarType::Float:
      return static_cast<double>(*tensor.const_data_ptr<float>());
    case c10::ScalarType::Long:
      return *tensor.const_data_ptr<int64_t>();
    case c10::ScalarType::Bool:
      return *tensor.const_data_ptr<bool>();
    default:
      return {};
  }
}

bool plan_number(
    BinaryPlan& plan,
    Binary kind,
    const at::Tensor& tensor,
    int at,
    const at::Tensor& number) {
  switch (number.scalar_type()) {
    case c10::ScalarType::Double:
    case c10::ScalarType::Float:
    case c10::ScalarType::Long:
    case c10::ScalarType::Bool:
      break;
    default:
      return false;
  }
  // Two 0-dim tensors promote each other; only Python numbers never do.
  const bool yields =
      number.unsafeGetTensorImpl()->is_wrapped_number() || tensor.dim() > 0;
  return yields && is_direct(tensor) &&
         plan_number(plan, kind, tensor, at, number_in(number));
}

}  // namespace

namespace {

template <class T>
float rounded_to(float value) {
  return static_cast<T>(value);
}

}  // namespace

ComputeValue compute_value(
    const at::Scalar& number, c10::ScalarType dtype, bool rounded) {
  ComputeValue value{};
  switch (dtype) {
    case c10::ScalarType::Long:
      value.as_int64 = number.to<int64_t>();
      return value;
    case c10::ScalarType::Int:
      value.as_int32 = static_cast<int32_t>(number.to<int64_t>());
      return value;
    case c10::ScalarType::Double:
      value.as_double = number.toDouble();
      return value;
    default:
      break;
  }
  value.as_float = static_cast<float>(number.toDouble());
  if (rounded && dtype == c10::ScalarType::BFloat16) {
    value.as_float = rounded_to<c10::BFloat16>(value.as_float);
  } else if (rounded && dtype == c10::ScalarType::Half) {
    value.as_float = rounded_to<c10::Half>(value.as_float);
  }
  return value;
}

bool plan_binary(
    BinaryPlan& plan, Binary kind, const at::Tensor& a, const at::Tensor& b) {
  if (C10_UNLIKELY(!is_direct(b))) {
    return is_number(b) && plan_number(plan, kind, a, 1, b);
  }
  if (C10_UNLIKELY(!is_direct(a))) {
    return is_number(a) && plan_number(plan, kind, b, 0, a);
  }
  plan.dtype = a.scalar_type();
  if (plan.dtype != b.scalar_type() || !same_device(a, b) || a.numel() == 0 ||
      b.numel() == 0) {
    return false;
  }
  plan.loops = &host_kernels::binary_loops(kind, plan.dtype);
  if (!has_loops(plan)) {
    return false;
  }
  plan.out_dtype = host_kernels::is_comparison(kind) ? at::kBool : plan.dtype;
  plan.tensor[0] = &a;
  plan.tensor[1] = &b;
  if (C10_LIKELY(a.sizes() == b.sizes())) {
    plan.shape = &a;
    plan.columns = a.numel();
    return true;
  }
  if (plan.loops->right_value == nullptr) {
    return false;
  }
  return line_up(plan, a.numel() < b.numel() ? 0 : 1);
}

bool plan_binary(
    BinaryPlan& plan, Binary kind, const at::Tensor& a, const at::Scalar& b) {
  return !b.isComplex() && !b.isSymbolic() && is_direct(a) &&
         plan_number(plan, kind, a, 1, b);
}

bool fits_output(const BinaryPlan& plan, const at::Tensor& out) {
  if (!is_direct(out) || out.scalar_type() != plan.out_dtype ||
      out.sizes() != plan.shape->sizes() || !same_device(out, *plan.shape)) {
    return false;
  }
  for (const auto* tensor : plan.tensor) {
    if (tensor != nullptr && !may_write(out, *tensor)) {
      return false;
    }
  }
  return true;
}

void launch_binary(
    const OpRecord& record,
    const BinaryPlan& plan,
    const at::Tensor& out,
    double parameter) {
  const auto loops = *plan.loops;
  const auto dtype = plan.dtype;
  auto* to = static_cast<char*>(output(out));
  const auto out_itemsize = static_cast<int64_t>(out.itemsize());
  const auto rows = plan.rows;
  const auto columns = plan.columns;
  if (plan.value_at < 0) {
    auto a = plan.operand[0];
    auto b = plan.operand[1];
    a.data = input(*plan.tensor[0]);
    b.data = input(*plan.tensor[1]);
    launch_on(record, *plan.shape, [=] {
      host_kernels::binary_rows(
          loops, dtype, out_itemsize, to, a, b, rows, columns, parameter);
    });
    return;
  }
  const auto& tensor = *plan.tensor[1 - plan.value_at];
  const auto* from = static_cast<const char*>(input(tensor));
  const auto itemsize = static_cast<int64_t>(tensor.itemsize());
  const auto value = plan.value;
  const bool left = plan.value_at == 0;
  launch_on(record, tensor, [=] {
    host_kernels::in_parts(columns, [=](int64_t begin, int64_t end) {
      auto* part = to + begin * out_itemsize;
      const auto* x = from + begin * itemsize;
      if (left) {
        loops.left_value(part, &value, x, end - begin, parameter);
      } else {
        loops.right_value(part, x, &value, end - begin, parameter);
      }
    });
  });
}

}  // namespace neuron

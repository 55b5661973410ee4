// Direct kernels of products of scaled fp8 and int8 operands: fp32 sums,
// scales and bias in fp32, one rounding.
#include "dispatch/scaled_matmul.h"

#include <ATen/ops/_scaled_mm_ops.h>
#include <ATen/ops/_weight_int8pack_mm_ops.h>
#include <torch/library.h>

#include <vector>

namespace neuron {
namespace {

using at::Tensor;
using host_kernels::GemmArgs;

// fp32 factors, one or `count` of them.
bool is_scale(const Tensor& scale, const Tensor& operand, int64_t count) {
  return is_direct(scale) && scale.scalar_type() == at::kFloat &&
         same_device(scale, operand) &&
         (scale.numel() == 1 || scale.numel() == count);
}

bool is_bias(const OptionalTensor& bias, const Tensor& operand, int64_t count) {
  return !is_given(bias) ||
         (is_direct(*bias) && bias->dim() == 1 && bias->size(0) == count &&
          same_device(*bias, operand) &&
          host_kernels::gemm_gives(bias->scalar_type()));
}

void add_bias(GemmArgs& args, const OptionalTensor& bias) {
  if (is_given(bias)) {
    args.addend = {input(*bias), bias->scalar_type(), 0, 0, 1};
    args.beta = 1;
  }
}

// A single factor belongs into alpha, which is read when the product runs.
struct Scale {
  const float* values;
  bool single;

  explicit Scale(const Tensor& scale)
      : values(static_cast<const float*>(input(scale))),
        single(scale.numel() == 1) {}
  float factor() const { return single ? *values : 1.0f; }
  const float* vector() const { return single ? nullptr : values; }
};

bool scaled_takes(
    const Tensor& a,
    const Tensor& b,
    const Tensor& scale_a,
    const Tensor& scale_b,
    const OptionalTensor& bias,
    const OptionalTensor& scale_result,
    c10::ScalarType dtype) {
  return is_matrix(a, 2) && is_matrix(b, 2) && is_fp8(a) && is_fp8(b) &&
         same_device(a, b) && a.size(1) == b.size(0) && a.numel() > 0 &&
         b.numel() > 0 && !is_given(scale_result) &&
         host_kernels::gemm_gives(dtype) && is_scale(scale_a, a, a.size(0)) &&
         is_scale(scale_b, b, b.size(1)) &&
         (scale_a.numel() == 1) == (scale_b.numel() == 1) &&
         is_bias(bias, a, b.size(1));
}

void launch_scaled(
    const OpRecord& record,
    const Tensor& a,
    const Tensor& b,
    const Tensor& scale_a,
    const Tensor& scale_b,
    const OptionalTensor& bias,
    const Tensor& out) {
  GemmArgs args;
  args.m = a.size(0);
  args.n = b.size(1);
  args.k = a.size(1);
  args.a = matrix(a);
  args.b = matrix(b);
  args.out = {output(out), out.scalar_type(), 0, out.stride(0), out.stride(1)};
  add_bias(args, bias);
  launch_on(record, a, [args, rows = Scale(scale_a), columns = Scale(scale_b)] {
    auto now = args;
    now.alpha = rows.factor() * columns.factor();
    now.row_scale = rows.vector();
    now.column_scale = columns.vector();
    host_kernels::gemm(now);
  });
}

Tensor scaled_mm(
    const Tensor& a,
    const Tensor& b,
    const Tensor& scale_a,
    const Tensor& scale_b,
    const OptionalTensor& bias,
    const OptionalTensor& scale_result,
    std::optional<c10::ScalarType> out_dtype,
    bool use_fast_accum) {
  using Op = at::_ops::_scaled_mm;
  const auto dtype = out_dtype.value_or(a.scalar_type());
  if (!scaled_takes(a, b, scale_a, scale_b, bias, scale_result, dtype)) {
    return OnHost<Op>::run(
        a, b, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum);
  }
  auto out = empty({a.size(0), b.size(1)}, dtype, a.device().index());
  launch_scaled(record_of<Op>(), a, b, scale_a, scale_b, bias, out);
  return out;
}

Tensor& scaled_mm_out(
    const Tensor& a,
    const Tensor& b,
    const Tensor& scale_a,
    const Tensor& scale_b,
    const OptionalTensor& bias,
    const OptionalTensor& scale_result,
    std::optional<c10::ScalarType> out_dtype,
    bool use_fast_accum,
    Tensor& out) {
  using Op = at::_ops::_scaled_mm_out;
  const auto dtype = out_dtype.value_or(out.scalar_type());
  const bool fits = is_matrix(out, 2) && same_device(out, a) &&
                    out.scalar_type() == dtype && a.dim() == 2 &&
                    b.dim() == 2 && out.size(0) == a.size(0) &&
                    out.size(1) == b.size(1) && !same_storage(out, a) &&
                    !same_storage(out, b) && !same_storage(out, scale_a) &&
                    !same_storage(out, scale_b);
  if (!fits ||
      !scaled_takes(a, b, scale_a, scale_b, bias, scale_result, dtype)) {
    return OnHost<Op>::run(
        a,
        b,
        scale_a,
        scale_b,
        bias,
        scale_result,
        out_dtype,
        use_fast_accum,
        out);
  }
  launch_scaled(record_of<Op>(), a, b, scale_a, scale_b, bias, out);
  return out;
}

// self [m, k] times the int8 weight [n, k], scaled for each of its rows.
Tensor weight_int8pack_mm(
    const Tensor& self, const Tensor& weight, const Tensor& scales) {
  using Op = at::_ops::_weight_int8pack_mm;
  const bool takes =
      is_matrix(self, 2) && is_matrix(weight, 2) && same_device(self, weight) &&
      host_kernels::gemm_gives(self.scalar_type()) &&
      weight.scalar_type() == at::kChar && weight.size(1) == self.size(1) &&
      self.numel() > 0 && weight.numel() > 0 && is_direct(scales) &&
      scales.numel() == weight.size(0) && same_device(scales, self) &&
      host_kernels::gemm_gives(scales.scalar_type());
  if (!takes) {
    return OnHost<Op>::run(self, weight, scales);
  }
  const auto n = weight.size(0);
  auto out =
      empty({self.size(0), n}, self.scalar_type(), self.device().index());
  GemmArgs args;
  args.m = self.size(0);
  args.n = n;
  args.k = self.size(1);
  args.a = matrix(self);
  args.b = {input(weight), at::kChar, 0, weight.stride(1), weight.stride(0)};
  args.out = {output(out), out.scalar_type(), 0, n, 1};
  const auto* given = input(scales);
  const auto dtype = scales.scalar_type();
  launch_on(record_of<Op>(), self, [=] {
    std::vector<float> wide;
    const auto widen = [&]<class T>(const T* values) {
      wide.assign(values, values + n);
      return wide.data();
    };
    auto now = args;
    now.column_scale = dtype == at::kFloat ? static_cast<const float*>(given)
                       : dtype == at::kHalf
                           ? widen(static_cast<const c10::Half*>(given))
                           : widen(static_cast<const c10::BFloat16*>(given));
    host_kernels::gemm(now);
  });
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_scaled_mm", TORCH_FN(scaled_mm));
  m.impl("_scaled_mm.out", TORCH_FN(scaled_mm_out));
  m.impl("_weight_int8pack_mm", TORCH_FN(weight_int8pack_mm));
}

}  // namespace
}  // namespace neuron

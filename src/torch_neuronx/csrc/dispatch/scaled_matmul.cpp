// Direct kernels of products of scaled fp8 and int8 operands: fp32 sums,
// scales and bias in fp32, one rounding.
#include "dispatch/direct.h"

#include <ATen/ops/_scaled_grouped_mm_ops.h>
#include <ATen/ops/_scaled_mm_ops.h>
#include <ATen/ops/_weight_int8pack_mm_ops.h>
#include <torch/library.h>

#include <memory>
#include <vector>

#include "dispatch/matmul.h"
#include "host_kernels/gemm.h"

namespace neuron {
namespace {

using at::Tensor;
using host_kernels::GemmArgs;
using host_kernels::MatrixIn;
using OptionalTensor = std::optional<Tensor>;

bool is_given(const OptionalTensor& tensor) {
  return tensor.has_value() && tensor->defined();
}

bool is_fp8(const Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat8_e4m3fn ||
         tensor.scalar_type() == at::kFloat8_e5m2;
}

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

MatrixIn matrix(const Tensor& tensor) {
  return {
      input(tensor),
      tensor.scalar_type(),
      0,
      tensor.stride(-2),
      tensor.stride(-1)};
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

// Groups of a product: `offs` are their ends along the dim that an operand of
// two dims has for all of them.
struct Groups {
  int64_t count = 0;
  const int32_t* ends = nullptr;  // null: both operands have a dim of groups

  int64_t begin(int64_t group) const {
    return ends == nullptr || group == 0 ? 0 : ends[group - 1];
  }
  int64_t size(int64_t group, int64_t whole) const {
    return ends == nullptr ? whole : ends[group] - begin(group);
  }
};

// scale_a and scale_b of one group: which rows and columns they belong to.
const float* scale_of(
    const float* scale,
    const Groups& groups,
    int64_t group,
    bool cut,
    int64_t length) {
  return scale + (cut ? groups.begin(group) : group * length);
}

const void* at_element(const void* data, int64_t element) {
  return static_cast<const char*>(data) + element;  // fp8: a byte each
}

Tensor scaled_grouped_mm(
    const Tensor& a,
    const Tensor& b,
    const Tensor& scale_a,
    const Tensor& scale_b,
    const OptionalTensor& offs,
    const OptionalTensor& bias,
    const OptionalTensor& scale_result,
    std::optional<c10::ScalarType> out_dtype,
    bool /*use_fast_accum*/) {
  const auto dtype = out_dtype.value_or(at::kBFloat16);
  TORCH_CHECK(
      (a.dim() == 2 || a.dim() == 3) && (b.dim() == 2 || b.dim() == 3),
      "_scaled_grouped_mm takes operands of 2 or 3 dims, but they have ",
      a.dim(),
      " and ",
      b.dim(),
      ".");
  TORCH_CHECK(
      is_fp8(a) && is_fp8(b) && same_device(a, b),
      "_scaled_grouped_mm takes two fp8 operands on one device, but got ",
      a.scalar_type(),
      " on ",
      a.device(),
      " and ",
      b.scalar_type(),
      " on ",
      b.device(),
      ". Quantize them with .to(torch.float8_e4m3fn).");
  TORCH_CHECK(
      host_kernels::gemm_gives(dtype),
      "_scaled_grouped_mm gives float32, bfloat16 or float16, not ",
      dtype,
      ".");
  TORCH_CHECK(
      !is_given(bias) && !is_given(scale_result),
      "_scaled_grouped_mm has no bias and no scale_result; add the bias to "
      "the result.");
  const bool cut = a.dim() == 2 || b.dim() == 2;
  TORCH_CHECK(
      is_given(offs) == cut,
      "_scaled_grouped_mm wants offs exactly where an operand of 2 dims holds "
      "all groups; operands have ",
      a.dim(),
      " and ",
      b.dim(),
      " dims.");
  const bool over_k = a.dim() == 2 && b.dim() == 2;
  Groups groups;
  if (cut) {
    TORCH_CHECK(
        is_direct(*offs) && offs->dim() == 1 &&
            offs->scalar_type() == at::kInt && same_device(*offs, a),
        "_scaled_grouped_mm wants offs as contiguous int32 of 1 dim on ",
        a.device(),
        ", but it is ",
        offs->scalar_type(),
        " of ",
        offs->dim(),
        " dims on ",
        offs->device(),
        ".");
    groups = {offs->size(0), static_cast<const int32_t*>(input(*offs))};
  } else {
    groups = {a.size(0), nullptr};
  }
  const auto m = a.size(-2);
  const auto n = b.size(-1);
  const auto k = a.size(-1);
  TORCH_CHECK(
      b.size(-2) == k && (a.dim() == 2 || a.size(0) == groups.count) &&
          (b.dim() == 2 || b.size(0) == groups.count),
      "_scaled_grouped_mm: shapes ",
      a.sizes(),
      " and ",
      b.sizes(),
      " do not multiply in ",
      groups.count,
      " groups.");
  const bool rows_cut = a.dim() == 2 && !over_k;
  const bool columns_cut = b.dim() == 2 && !over_k;
  const auto wanted_a = rows_cut ? m : m * groups.count;
  const auto wanted_b = columns_cut ? n : n * groups.count;
  TORCH_CHECK(
      is_direct(scale_a) && scale_a.scalar_type() == at::kFloat &&
          scale_a.numel() == wanted_a && is_direct(scale_b) &&
          scale_b.scalar_type() == at::kFloat && scale_b.numel() == wanted_b,
      "_scaled_grouped_mm wants contiguous float32 scales of ",
      wanted_a,
      " rows and ",
      wanted_b,
      " columns, but they have ",
      scale_a.numel(),
      " and ",
      scale_b.numel(),
      " elements.");

  const int device = a.device().index();
  auto out = rows_cut || columns_cut
                 ? empty({m, n}, dtype, device)
                 : empty({groups.count, m, n}, dtype, device);
  GemmArgs all;
  all.m = m;
  all.n = n;
  all.k = k;
  all.a = matrix(a);
  all.b = matrix(b);
  all.out = {output(out), dtype, 0, out.stride(-2), out.stride(-1)};
  const auto a_group = a.dim() == 3 ? a.stride(0) : 0;
  const auto b_group = b.dim() == 3 ? b.stride(0) : 0;
  const auto out_group = out.dim() == 3 ? out.stride(0) : 0;
  const auto itemsize = static_cast<int64_t>(out.itemsize());
  const auto num_bytes = out.nbytes();
  const auto* rows = static_cast<const float*>(input(scale_a));
  const auto* columns = static_cast<const float*>(input(scale_b));
  launch_on(record_of<at::_ops::_scaled_grouped_mm>(), a, [=] {
    if (cut) {
      // Rows beyond the last group, and empty groups, are zero.
      std::memset(all.out.data, 0, num_bytes);
    }
    const int64_t along = over_k ? k : rows_cut ? m : n;
    for (int64_t group = 0; group < groups.count; ++group) {
      const auto begin = groups.begin(group);
      const auto size = groups.size(group, along);
      TORCH_CHECK_INDEX(
          begin >= 0 && size >= 0 && begin + size <= along,
          "offs of _scaled_grouped_mm: group ",
          group,
          " ends at ",
          begin + size,
          ", which is not within ",
          along,
          ".");
      if (cut && size == 0) {
        continue;
      }
      auto args = all;
      args.m = rows_cut ? size : m;
      args.n = columns_cut ? size : n;
      args.k = over_k ? size : k;
      auto a_at = group * a_group;
      auto b_at = group * b_group;
      auto out_at = group * out_group;
      if (rows_cut) {
        a_at = begin * all.a.row_stride;
        out_at = begin * all.out.row_stride;
      }
      if (columns_cut) {
        b_at = begin * all.b.column_stride;
        out_at = begin * all.out.column_stride;
      }
      if (over_k) {
        a_at = begin * all.a.column_stride;
        b_at = begin * all.b.row_stride;
      }
      args.a.data = at_element(all.a.data, a_at);
      args.b.data = at_element(all.b.data, b_at);
      args.out.data = static_cast<char*>(all.out.data) + out_at * itemsize;
      args.row_scale = scale_of(rows, groups, group, rows_cut, m);
      args.column_scale = scale_of(columns, groups, group, columns_cut, n);
      host_kernels::gemm(args);
    }
  });
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
  m.impl("_scaled_grouped_mm", TORCH_FN(scaled_grouped_mm));
  m.impl("_weight_int8pack_mm", TORCH_FN(weight_int8pack_mm));
}

}  // namespace
}  // namespace neuron

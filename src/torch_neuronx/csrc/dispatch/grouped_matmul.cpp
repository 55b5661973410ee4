// Direct kernel of scaled fp8 products in groups: the experts of a layer.
#include "dispatch/scaled_matmul.h"

#include <ATen/ops/_scaled_grouped_mm_ops.h>
#include <torch/library.h>

#include <cstring>

namespace neuron {
namespace {

using at::Tensor;
using host_kernels::GemmArgs;

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

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_scaled_grouped_mm", TORCH_FN(scaled_grouped_mm));
}

}  // namespace
}  // namespace neuron

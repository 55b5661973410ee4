// Scaled dot-product attention. ATen asks which algorithm; the answer is the
// CPU's. Its flash kernel has a direct kernel of ours in front.
#include "dispatch/direct.h"

#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice_native.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward_ops.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_ops.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <cmath>

#include "host_kernels/attention.h"

namespace neuron {
namespace {

using at::Tensor;
using host_kernels::AttentionShape;
using host_kernels::HeadsIn;
using host_kernels::HeadsOut;
using Mask = std::optional<Tensor>;
using Forward = at::_ops::_scaled_dot_product_flash_attention_for_cpu;
using Backward = at::_ops::_scaled_dot_product_flash_attention_for_cpu_backward;

bool is_heads(const Tensor& tensor) {
  constexpr c10::DispatchKeySet lazy(
      {c10::DispatchKey::Conjugate,
       c10::DispatchKey::Negative,
       c10::DispatchKey::ZeroTensor});
  const auto keys = tensor.key_set();
  return keys.has(c10::DispatchKey::PrivateUse1) && !keys.has_any(lazy) &&
         tensor.dim() == 4 && tensor.numel() > 0 && tensor.stride(3) == 1;
}

bool is_direct_attention(
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    double dropout_p,
    const Mask& mask) {
  const auto dtype = query.scalar_type();
  if (dtype != at::kFloat && dtype != at::kBFloat16 && dtype != at::kHalf) {
    return false;
  }
  if (dropout_p != 0 || !is_heads(query) || !is_heads(key) ||
      !is_heads(value) || key.scalar_type() != dtype ||
      value.scalar_type() != dtype || query.device() != key.device() ||
      query.device() != value.device() || query.size(0) != key.size(0) ||
      query.size(0) != value.size(0) || key.size(1) != value.size(1) ||
      query.size(1) % key.size(1) != 0 || query.size(3) != key.size(3) ||
      key.size(2) != value.size(2)) {
    return false;
  }
  if (!mask.has_value() || !mask->defined()) {
    return true;
  }
  const auto kind = mask->scalar_type();
  return (kind == at::kBool || kind == dtype || kind == at::kFloat) &&
         (mask->dim() == 2 || mask->dim() == 4) &&
         mask->device() == query.device() && !mask->is_neg();
}

template <class Heads>
Heads heads_of(const Tensor& tensor, decltype(Heads::data) data) {
  Heads heads;
  heads.data = data;
  heads.dtype = tensor.scalar_type();
  heads.batch_stride = tensor.stride(0);
  heads.head_stride = tensor.stride(1);
  heads.row_stride = tensor.stride(2);
  return heads;
}

HeadsIn in(const Tensor& tensor) {
  return heads_of<HeadsIn>(tensor, input(tensor));
}

HeadsOut out_of(const Tensor& tensor) {
  return heads_of<HeadsOut>(tensor, output(tensor));
}

AttentionShape shape_of(
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    bool is_causal,
    const Mask& mask,
    std::optional<double> scale) {
  AttentionShape shape;
  shape.batch = query.size(0);
  shape.heads = query.size(1);
  shape.kv_heads = key.size(1);
  shape.queries = query.size(2);
  shape.keys = key.size(2);
  shape.width = query.size(3);
  shape.value_width = value.size(3);
  shape.scale = static_cast<float>(
      scale.value_or(1.0 / std::sqrt(static_cast<double>(shape.width))));
  if (is_causal) {
    shape.visible.last = 0;
  }
  if (mask.has_value() && mask->defined()) {
    const auto full =
        mask->expand({shape.batch, shape.heads, shape.queries, shape.keys});
    shape.mask.data = input(full);
    shape.mask.dtype = full.scalar_type();
    shape.mask.batch_stride = full.stride(0);
    shape.mask.head_stride = full.stride(1);
    shape.mask.query_stride = full.stride(2);
    shape.mask.key_stride = full.stride(3);
  }
  return shape;
}

// [batch, heads, rows, width] in memory order [batch, rows, heads, width], as
// the CPU's kernel returns gradients: merging the heads is then a view.
Tensor rows_first(const Tensor& like, int64_t heads, int64_t width) {
  return empty(
             {like.size(0), like.size(2), heads, width},
             like.scalar_type(),
             like.device().index())
      .transpose(1, 2);
}

std::tuple<Tensor, Tensor> forward(
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    double dropout_p,
    bool is_causal,
    const Mask& mask,
    std::optional<double> scale) {
  if (!is_direct_attention(query, key, value, dropout_p, mask)) {
    return OnHost<Forward>::run(
        query, key, value, dropout_p, is_causal, mask, scale);
  }
  const auto shape = shape_of(query, key, value, is_causal, mask, scale);
  // Strides as the CPU's: those of the query.
  auto result =
      shape.value_width == shape.width
          ? at::empty_like(query)
          : empty(
                {shape.batch, shape.heads, shape.queries, shape.value_width},
                query.scalar_type(),
                query.device().index());
  auto log_sum_exp = empty(
      {shape.batch, shape.heads, shape.queries},
      at::kFloat,
      query.device().index());
  launch_on(
      record_of<Forward>(),
      query,
      [shape,
       q = in(query),
       k = in(key),
       v = in(value),
       o = out_of(result),
       lse = static_cast<float*>(output(log_sum_exp))] {
        host_kernels::attention_forward(shape, q, k, v, o, lse);
      });
  return {result, log_sum_exp};
}

std::tuple<Tensor, Tensor, Tensor> backward(
    const Tensor& grad_out,
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    const Tensor& result,
    const Tensor& log_sum_exp,
    double dropout_p,
    bool is_causal,
    const Mask& mask,
    std::optional<double> scale) {
  // The same test as in the forward, whose log-sum-exp layout this reads.
  if (!is_direct_attention(query, key, value, dropout_p, mask)) {
    return OnHost<Backward>::run(
        grad_out,
        query,
        key,
        value,
        result,
        log_sum_exp,
        dropout_p,
        is_causal,
        mask,
        scale);
  }
  const auto shape = shape_of(query, key, value, is_causal, mask, scale);
  const auto grad = is_heads(grad_out) ? grad_out : grad_out.contiguous();
  const auto saved = is_heads(result) ? result : result.contiguous();
  const auto lse = log_sum_exp.contiguous();
  auto grad_query = rows_first(query, shape.heads, shape.width);
  auto grad_key = rows_first(key, shape.kv_heads, shape.width);
  auto grad_value = rows_first(value, shape.kv_heads, shape.value_width);
  host_kernels::AttentionGradients gradients;
  gradients.query = out_of(grad_query);
  gradients.key = out_of(grad_key);
  gradients.value = out_of(grad_value);
  launch_on(
      record_of<Backward>(),
      query,
      [shape,
       gradients,
       q = in(query),
       k = in(key),
       v = in(value),
       o = in(saved),
       g = in(grad),
       l = static_cast<const float*>(input(lse))] {
        host_kernels::attention_backward(shape, q, k, v, o, g, l, gradients);
      });
  return {grad_query, grad_key, grad_value};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_scaled_dot_product_flash_attention_for_cpu", TORCH_FN(forward));
  m.impl(
      "_scaled_dot_product_flash_attention_for_cpu_backward",
      TORCH_FN(backward));
}

}  // namespace
}  // namespace neuron

namespace at::native {
// Looks at metadata only, so it also decides for fake tensors and dry runs.
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &_fused_sdp_choice_cpp)
}  // namespace at::native

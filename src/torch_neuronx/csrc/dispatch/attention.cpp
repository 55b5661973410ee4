// Scaled dot-product attention: the choice of algorithm. The fused one is the
// CPU's flash kernel, whose forward and backward run on aliases.
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice.h>

#include "dispatch/host_call.h"

namespace neuron {
namespace {

int64_t choose(
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    const std::optional<at::Tensor>& mask,
    double dropout_p,
    bool is_causal,
    std::optional<double> scale,
    bool enable_gqa) {
  static auto& record = op_record("aten::_fused_sdp_choice");
  HostCall call(record);
  auto as_host = [&](const at::Tensor& tensor) {
    return call.to_host(tensor, /*written=*/false);
  };
  const auto q = as_host(query);
  const auto k = as_host(key);
  const auto v = as_host(value);
  std::optional<at::Tensor> m;
  if (mask.has_value() && mask->defined()) {
    m = as_host(*mask);
  }
  const HostCall::Scope scope(call);
  return at::_fused_sdp_choice(
      q, k, v, m, dropout_p, is_causal, scale, enable_gqa);
}

} // namespace
} // namespace neuron

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &neuron::choose)
} // namespace at::native

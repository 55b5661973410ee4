// Autocast on neuron: CUDA's lists of ops, bf16 unless the user says fp16.
// One more than CUDA's: cross_entropy_loss, which asks log_softmax for the
// dtype of its input, so bf16 logits would give log-probabilities rounded to
// bf16.
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace neuron {
namespace {

using namespace at;  // the op lists name ATen's types unqualified

Tensor binary_cross_entropy_banned(
    const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t) {
  TORCH_CHECK(
      false,
      "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are "
      "unsafe to autocast: they need probabilities in fp32. Use "
      "binary_cross_entropy_with_logits or BCEWithLogitsLoss, or run this "
      "region with autocast disabled.");
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define LOWER_PRECISION(...) \
  KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
  AT_FORALL_LOWER_PRECISION_FP(LOWER_PRECISION)
#undef LOWER_PRECISION

#define FULL_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_FP32(FULL_PRECISION)
  FULL_PRECISION(cross_entropy_loss)
#undef FULL_PRECISION

#define FULL_PRECISION_DTYPE(...) \
  KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
  AT_FORALL_FP32_SET_OPT_DTYPE(FULL_PRECISION_DTYPE)
#undef FULL_PRECISION_DTYPE

  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(
      KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)

#define PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_PROMOTE(PROMOTE)
#undef PROMOTE

  m.impl(
      TORCH_SELECTIVE_NAME("aten::binary_cross_entropy"),
      TORCH_FN(binary_cross_entropy_banned));
}

}  // namespace
}  // namespace neuron

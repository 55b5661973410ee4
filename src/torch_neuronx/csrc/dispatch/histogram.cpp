// histc of integers, which accelerators count and PyTorch's CPU refuses:
// mixture-of-experts models count the tokens of each expert with it.
#include <ATen/ops/histc.h>
#include <torch/library.h>

#include "dispatch/on_host.h"

namespace neuron {
namespace {

struct Histc : at::_ops::histc {
  static at::Tensor call(
      const at::Tensor& self,
      int64_t bins,
      const at::Scalar& min,
      const at::Scalar& max) {
    const auto dtype = self.scalar_type();
    if (!at::isIntegralType(dtype, /*includeBool=*/false)) {
      return at::histc(self, bins, min, max);
    }
    // Bins of doubles are those of integers up to 2^53; counts have the
    // input's dtype, as on other accelerators.
    return at::histc(self.to(at::kDouble), bins, min, max).to(dtype);
  }
};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("histc", TORCH_FN((OnHost<Histc>::run)));
}

}  // namespace
}  // namespace neuron

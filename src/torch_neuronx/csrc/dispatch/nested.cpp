// Sizes, strides and offsets of nested tensors: they live on the CPU, for
// tensors of every device.
#include <ATen/NestedTensorImpl.h>
#include <torch/library.h>

namespace neuron {
namespace {

using at::Tensor;

const at::native::NestedTensorImpl& nested(const Tensor& self) {
  return *static_cast<const at::native::NestedTensorImpl*>(
      self.unsafeGetTensorImpl());
}

Tensor sizes(const Tensor& self) { return nested(self).get_nested_sizes(); }

Tensor strides(const Tensor& self) { return nested(self).get_nested_strides(); }

Tensor storage_offsets(const Tensor& self) {
  return nested(self).get_storage_offsets();
}

TORCH_LIBRARY_IMPL(aten, NestedTensorPrivateUse1, m) {
  m.impl("_nested_tensor_size", TORCH_FN(sizes));
  m.impl("_nested_tensor_strides", TORCH_FN(strides));
  m.impl("_nested_tensor_storage_offsets", TORCH_FN(storage_offsets));
}

}  // namespace
}  // namespace neuron

// Aliases of tensors that are not one strided buffer: sparse COO, compressed
// sparse, quantized, nested, zero tensors.
#include <ATen/NestedTensorImpl.h>
#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/zeros.h>
#include <ATen/quantized/QTensorImpl.h>
#include <ATen/quantized/Quantizer.h>

#include "dispatch/host_call.h"

namespace neuron {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

bool has(const at::Tensor& tensor, DispatchKey key) {
  return tensor.key_set().has(key);
}

at::SparseTensorImpl* coo(const at::Tensor& tensor) {
  return static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
}

at::SparseCsrTensorImpl* csr(const at::Tensor& tensor) {
  return static_cast<at::SparseCsrTensorImpl*>(tensor.unsafeGetTensorImpl());
}

at::native::NestedTensorImpl* nested(const at::Tensor& tensor) {
  return static_cast<at::native::NestedTensorImpl*>(
      tensor.unsafeGetTensorImpl());
}

// The same COO tensor on other components.
at::Tensor make_coo(
    const at::Tensor& like,
    DispatchKey key,
    const at::Tensor& indices,
    const at::Tensor& values) {
  auto tensor = at::detail::make_tensor<at::SparseTensorImpl>(
      DispatchKeySet(key), like.dtype());
  auto* impl = coo(tensor);
  impl->resize_(coo(like)->sparse_dim(), coo(like)->dense_dim(), like.sizes());
  impl->set_indices_and_values_unsafe(indices, values);
  impl->set_coalesced(coo(like)->coalesced());
  return tensor;
}

at::Tensor make_csr(
    const at::Tensor& like,
    DispatchKey key,
    c10::Device device,
    const at::Tensor& compressed,
    const at::Tensor& plain,
    const at::Tensor& values) {
  auto tensor = at::detail::make_tensor<at::SparseCsrTensorImpl>(
      DispatchKeySet(key), device, csr(like)->layout(), like.dtype());
  csr(tensor)->set_member_tensors(compressed, plain, values, like.sizes());
  return tensor;
}

at::Tensor make_nested(
    const at::Tensor& like, DispatchKey key, c10::Storage storage) {
  // Sizes, strides and offsets of a nested tensor live on the CPU.
  return at::detail::make_tensor<at::native::NestedTensorImpl>(
      std::move(storage),
      DispatchKeySet(key),
      like.dtype(),
      nested(like)->get_nested_sizes(),
      nested(like)->get_nested_strides(),
      nested(like)->get_storage_offsets());
}

// Scales and zero points may be aliases of device memory that the quantizer
// does not own; the result's quantizer has its own.
at::QuantizerPtr owned(const at::QuantizerPtr& from, const at::Tensor& tensor) {
  if (from->qscheme() != at::kPerChannelAffine &&
      from->qscheme() != at::kPerChannelAffineFloatQParams) {
    return from;
  }
  const auto* channels =
      static_cast<at::PerChannelAffineQuantizer*>(from.get());
  return at::make_per_channel_affine_quantizer(
      channels->scales().clone(),
      channels->zero_points().clone(),
      channels->axis(),
      tensor.scalar_type());
}

at::Tensor make_quantized(
    const at::Tensor& like, DispatchKey key, c10::Storage storage) {
  auto* from = static_cast<at::QTensorImpl*>(like.unsafeGetTensorImpl());
  auto tensor = at::detail::make_tensor<at::QTensorImpl>(
      std::move(storage),
      DispatchKeySet(key),
      like.dtype(),
      owned(from->quantizer(), like));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(
      like.sizes(), like.strides(), like.storage_offset());
  return tensor;
}

}  // namespace

at::Tensor HostCall::alias_special(const at::Tensor& tensor, bool written) {
  if (tensor._is_zerotensor()) {
    return at::zeros(
        tensor.sizes(), tensor.options().device(c10::DeviceType::CPU));
  }
  if (has(tensor, DispatchKey::Sparse)) {
    return make_coo(
        tensor,
        DispatchKey::SparseCPU,
        to_host(coo(tensor)->indices(), written),
        to_host(coo(tensor)->values(), written));
  }
  if (has(tensor, DispatchKey::SparseCsr)) {
    return make_csr(
        tensor,
        DispatchKey::SparseCsrCPU,
        c10::Device(c10::DeviceType::CPU),
        to_host(csr(tensor)->compressed_indices(), written),
        to_host(csr(tensor)->plain_indices(), written),
        to_host(csr(tensor)->values(), written));
  }
  auto storage = host_alias(tensor.storage().unsafeGetStorageImpl(), written);
  if (has(tensor, DispatchKey::Quantized)) {
    return make_quantized(tensor, DispatchKey::QuantizedCPU, storage);
  }
  TORCH_CHECK(
      has(tensor, DispatchKey::NestedTensor),
      op_.name,
      " got a neuron tensor of an unknown kind: ",
      tensor.key_set(),
      ".");
  return make_nested(tensor, DispatchKey::NestedTensorCPU, storage);
}

// A sparse op in place may have replaced indices and values.
void HostCall::finish_special(const Entry& entry) {
  const auto& original = entry.original;
  if (has(original, DispatchKey::Sparse)) {
    auto* alias = coo(entry.alias);
    auto* impl = coo(original);
    impl->raw_resize_(
        alias->sparse_dim(), alias->dense_dim(), entry.alias.sizes());
    impl->set_indices_and_values_unsafe(
        to_device(alias->indices(), /*sole=*/true),
        to_device(alias->values(), /*sole=*/true));
    impl->set_coalesced(alias->coalesced());
  } else if (has(original, DispatchKey::SparseCsr)) {
    auto* alias = csr(entry.alias);
    csr(original)->set_member_tensors(
        to_device(alias->compressed_indices(), /*sole=*/true),
        to_device(alias->plain_indices(), /*sole=*/true),
        to_device(alias->values(), /*sole=*/true),
        entry.alias.sizes());
  } else if (has(original, DispatchKey::Quantized)) {
    auto* from =
        static_cast<at::QTensorImpl*>(entry.alias.unsafeGetTensorImpl());
    static_cast<at::QTensorImpl*>(original.unsafeGetTensorImpl())
        ->set_quantizer_(owned(from->quantizer(), entry.alias));
    original.unsafeGetTensorImpl()->set_sizes_and_strides(
        entry.alias.sizes(), entry.alias.strides());
  }
}

at::Tensor HostCall::wrap_special(const at::Tensor& host, bool sole) {
  if (host._is_zerotensor()) {
    return at::zeros(host.sizes(), host.options().device(device_at(device())));
  }
  if (has(host, DispatchKey::Sparse)) {
    return make_coo(
        host,
        DispatchKey::SparsePrivateUse1,
        to_device(coo(host)->indices(), sole),
        to_device(coo(host)->values(), sole));
  }
  if (has(host, DispatchKey::SparseCsr)) {
    return make_csr(
        host,
        DispatchKey::SparseCsrPrivateUse1,
        device_at(device()),
        to_device(csr(host)->compressed_indices(), sole),
        to_device(csr(host)->plain_indices(), sole),
        to_device(csr(host)->values(), sole));
  }
  if (has(host, DispatchKey::Quantized)) {
    return make_quantized(
        host, DispatchKey::QuantizedPrivateUse1, storage_for(host, sole));
  }
  TORCH_CHECK(
      has(host, DispatchKey::NestedTensor),
      op_.name,
      " returned a tensor that has no neuron form: ",
      host.key_set(),
      ".");
  return make_nested(
      host, DispatchKey::NestedTensorPrivateUse1, storage_for(host, sole));
}

}  // namespace neuron

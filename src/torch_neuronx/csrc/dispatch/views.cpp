// Ops that change metadata only: views, set_, resize_, record_stream.
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>

#include "c10/storage.h"
#include "dispatch/op_record.h"

namespace neuron {
namespace {

at::Tensor as_strided(
    const at::Tensor& self,
    at::IntArrayRef size,
    at::IntArrayRef stride,
    std::optional<int64_t> offset) {
  static auto& record = op_record("aten::as_strided");
  note_executed(record);
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}

at::Tensor view(const at::Tensor& self, at::IntArrayRef size) {
  static auto& record = op_record("aten::view");
  note_executed(record);
  return at::native::view(self, size);
}

at::Tensor reshape_alias(
    const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride) {
  static auto& record = op_record("aten::_reshape_alias");
  note_executed(record);
  return at::native::_reshape_alias(self, size, stride);
}

at::Tensor unfold(
    const at::Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  static auto& record = op_record("aten::unfold");
  note_executed(record);
  return at::native::unfold(self, dimension, size, step);
}

// Resizing moves bytes, so what is queued on them comes first.
void drain(const at::Tensor& self) {
  auto& queue = runtime::current_queue(self.device().index());
  if (!queue.idle()) {
    with_torch_errors([&] { queue.wait_idle(); });
  }
}

// Without memory there are no bytes to keep.
void grow(const at::Tensor& self, size_t nbytes) {
  auto* storage = self.storage().unsafeGetStorageImpl();
  if (nbytes > storage->nbytes()) {
    resize_storage(storage, nbytes);
  }
}

const at::Tensor& resize_(
    const at::Tensor& self,
    at::IntArrayRef size,
    std::optional<at::MemoryFormat> memory_format) {
  static auto& record = op_record("aten::resize_");
  note_executed(record);
  drain(self);
  const c10::DeviceGuard guard(self.device());
  auto* impl = self.unsafeGetTensorImpl();
  const auto bytes_before = self.storage().nbytes();
  // Memory first: where there is none, the tensor stays what it was.
  if (self.sizes() != size && c10::multiply_integers(size) > 0) {
    grow(
        self,
        at::detail::computeStorageNbytesContiguous(
            size,
            self.dtype().itemsize(),
            static_cast<size_t>(self.storage_offset())));
  }
  if (runtime::is_dry()) {
    impl->set_sizes_contiguous(size);
  } else {
    at::native::resize_impl_cpu_(impl, size, /*stride=*/std::nullopt);
  }
  if (memory_format.has_value()) {
    TORCH_CHECK(
        *memory_format != at::MemoryFormat::Preserve,
        "resize_ takes a definite memory format, got Preserve.");
    impl->empty_tensor_restride(*memory_format);
  }
  if (C10_UNLIKELY(
          at::globalContext().deterministicAlgorithms() &&
          at::globalContext().deterministicFillUninitializedMemory())) {
    at::native::fill_resize_deterministic_(
        self, static_cast<int64_t>(bytes_before));
  }
  return self;
}

at::Tensor& set_storage_at(
    at::Tensor& self,
    at::Storage source,
    int64_t offset,
    at::IntArrayRef size,
    at::IntArrayRef stride) {
  drain(self);
  const c10::DeviceGuard guard(self.device());
  if (runtime::is_dry() && !stride.empty()) {
    const auto needed = at::detail::computeStorageNbytes(
        size, stride, self.dtype().itemsize(), static_cast<size_t>(offset));
    if (needed > source.nbytes()) {
      resize_storage(source.unsafeGetStorageImpl(), needed);
    }
  }
  return at::native::set_storage_cpu_(
      self, std::move(source), offset, size, stride);
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source) {
  const auto itemsize = static_cast<int64_t>(self.dtype().itemsize());
  TORCH_CHECK(
      static_cast<int64_t>(source.nbytes()) % itemsize == 0,
      "set_: a storage of ",
      source.nbytes(),
      " bytes does not hold whole elements of ",
      self.dtype(),
      " (",
      itemsize,
      " bytes each).");
  const auto numel = static_cast<int64_t>(source.nbytes()) / itemsize;
  return set_storage_at(self, std::move(source), 0, {numel}, {});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  if (self.unsafeGetTensorImpl() == source.unsafeGetTensorImpl()) {
    return self;
  }
  return set_storage_at(
      self,
      source.storage(),
      source.storage_offset(),
      source.sizes(),
      source.strides());
}

at::Tensor& set_empty(at::Tensor& self) {
  const c10::DeviceGuard guard(self.device());
  return set_storage_at(
      self, c10::Storage(make_storage(self.device().index(), 0)), 0, {0}, {});
}

void record_stream(at::Tensor& self, c10::Stream stream) {
  if (self.has_storage()) {
    const c10::impl::VirtualGuardImpl guard(kNeuron);
    guard.recordDataPtrOnStream(self.storage().data_ptr(), stream);
  }
}

bool is_set_to(const at::Tensor& self, const at::Tensor& source) {
  return self.storage().unsafeGetStorageImpl() ==
             source.storage().unsafeGetStorageImpl() &&
         self.storage_offset() == source.storage_offset() &&
         self.sizes() == source.sizes() && self.strides() == source.strides();
}

// Whether `tensor.data = other` may be, which Module.to() needs to keep a
// parameter the same object: tied weights stay tied. Core's own list of
// backends lacks renamed ones.
bool may_take_data(const at::Tensor& self, const at::Tensor& other) {
  constexpr c10::DispatchKeySet backends(
      {c10::BackendComponent::CPUBit, c10::BackendComponent::PrivateUse1Bit});
  const auto mine = self.key_set();
  const auto theirs = other.key_set();
  const auto both = [&](c10::DispatchKey kind) {
    return mine.has_any(c10::DispatchKeySet(kind)) &&
           theirs.has_any(c10::DispatchKeySet(kind));
  };
  return mine.has_any(backends) && theirs.has_any(backends) &&
         (both(c10::DispatchKey::Dense) || both(c10::DispatchKey::Sparse));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_has_compatible_shallow_copy_type", TORCH_FN(may_take_data));
  m.impl("as_strided", TORCH_FN(as_strided));
  m.impl("view", TORCH_FN(view));
  m.impl("_reshape_alias", TORCH_FN(reshape_alias));
  m.impl("unfold", TORCH_FN(unfold));
  m.impl("resize_", TORCH_FN(resize_));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage_at));
  m.impl("set_.source_Storage", TORCH_FN(set_storage));
  m.impl("set_.source_Tensor", TORCH_FN(set_tensor));
  m.impl("set_", TORCH_FN(set_empty));
  m.impl("is_set_to", TORCH_FN(is_set_to));
  m.impl("record_stream", TORCH_FN(record_stream));
}

}  // namespace
}  // namespace neuron

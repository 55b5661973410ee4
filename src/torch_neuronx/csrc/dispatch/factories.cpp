// Fresh tensors on the device.
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/fill.h>
#include <torch/library.h>

#include "c10/storage.h"
#include "dispatch/factories.h"
#include "dispatch/op_record.h"

namespace neuron {
namespace {

void check_options(
    std::optional<at::Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK(
      layout.value_or(at::kStrided) == at::kStrided,
      "empty on neuron makes strided tensors, got layout ",
      layout.value_or(at::kStrided),
      ". Use torch.sparse_coo_tensor or .to_sparse() for sparse ones.");
  TORCH_CHECK(
      !pin_memory.value_or(false),
      "Only dense CPU tensors can be pinned, not neuron ones. Pin the CPU "
      "tensor, then copy it.");
}

// Under deterministic algorithms fresh memory is NaN or the largest integer.
void fill_if_deterministic(const at::Tensor& tensor) {
  const auto& context = at::globalContext();
  if (C10_UNLIKELY(
          context.deterministicAlgorithms() &&
          context.deterministicFillUninitializedMemory())) {
    at::native::fill_empty_deterministic_(const_cast<at::Tensor&>(tensor));
  }
}

at::Tensor empty_memory_format(
    at::IntArrayRef size,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout> layout,
    std::optional<at::Device> device,
    std::optional<bool> pin_memory,
    std::optional<at::MemoryFormat> memory_format) {
  static auto& record = op_record("aten::empty.memory_format");
  check_options(layout, pin_memory);
  const auto type = dtype.value_or(at::get_default_dtype_as_scalartype());
  note_executed(record);
  auto tensor =
      empty(size, type, checked_index(device.value_or(c10::Device(kNeuron))));
  const auto format = memory_format.value_or(at::MemoryFormat::Contiguous);
  if (C10_UNLIKELY(
          format != at::MemoryFormat::Contiguous &&
          format != at::MemoryFormat::Preserve)) {
    tensor.unsafeGetTensorImpl()->empty_tensor_restride(format);
  }
  fill_if_deterministic(tensor);
  return tensor;
}

at::Tensor empty_strided_op(
    at::IntArrayRef size,
    at::IntArrayRef stride,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout> layout,
    std::optional<at::Device> device,
    std::optional<bool> pin_memory) {
  static auto& record = op_record("aten::empty_strided");
  check_options(layout, pin_memory);
  const auto type = dtype.value_or(at::get_default_dtype_as_scalartype());
  note_executed(record);
  auto tensor = empty_strided(
      size, stride, type, checked_index(device.value_or(c10::Device(kNeuron))));
  fill_if_deterministic(tensor);
  return tensor;
}

at::Tensor efficientzerotensor(
    at::IntArrayRef size,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout>,
    std::optional<at::Device> device,
    std::optional<bool>) {
  const int index = checked_index(device.value_or(c10::Device(kNeuron)));
  static auto* allocators = [] {
    auto* all = new std::vector<at::native::ZeroTensorAllocator>();
    for (int i = 0; i < runtime::device_count(); ++i) {
      all->emplace_back(device_at(i));
    }
    return all;
  }();
  return at::detail::empty_generic(
      size,
      &(*allocators)[static_cast<size_t>(index)],
      c10::DispatchKeySet(
          {c10::DispatchKey::PrivateUse1, c10::DispatchKey::ZeroTensor}),
      dtype.value_or(at::get_default_dtype_as_scalartype()),
      std::nullopt);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(empty_memory_format));
  m.impl("empty_strided", TORCH_FN(empty_strided_op));
  m.impl("_efficientzerotensor", TORCH_FN(efficientzerotensor));
}

}  // namespace

at::Tensor make_tensor(
    at::IntArrayRef size, caffe2::TypeMeta dtype, int device, size_t nbytes) {
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(make_storage(device, nbytes)),
      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      dtype);
  if (size.size() != 1 || size[0] != 0) {
    tensor.unsafeGetTensorImpl()->generic_set_sizes_contiguous(size);
  }
  return tensor;
}

at::Tensor empty(at::IntArrayRef size, at::ScalarType dtype, int device) {
  at::detail::check_size_nonnegative(size);
  const auto meta = c10::scalarTypeToTypeMeta(dtype);
  const auto nbytes =
      at::detail::computeStorageNbytesContiguous(size, meta.itemsize());
  return make_tensor(size, meta, device, nbytes);
}

at::Tensor empty_strided(
    at::IntArrayRef size,
    at::IntArrayRef stride,
    at::ScalarType dtype,
    int device) {
  at::detail::check_size_nonnegative(size);
  const auto meta = c10::scalarTypeToTypeMeta(dtype);
  const auto nbytes =
      at::detail::computeStorageNbytes(size, stride, meta.itemsize());
  auto tensor = make_tensor({0}, meta, device, nbytes);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride);
  return tensor;
}

}  // namespace neuron

#include "dispatch/dry.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>

namespace neuron::dry {
namespace {

std::atomic<double (*)(const std::string&, Needs)> supply_hook{nullptr};

constexpr std::array<std::string_view, 10> kDataDependent{
    "aten::nonzero",
    "aten::masked_select",
    "aten::equal",
    "aten::bincount",
    "aten::_unique",
    "aten::_unique2",
    "aten::unique_dim",
    "aten::unique_consecutive",
    "aten::unique_dim_consecutive",
    "aten::repeat_interleave.Tensor"};

}  // namespace

void set_supply_hook(double (*hook)(const std::string& op, Needs needs)) {
  supply_hook = hook;
}

double supplied(const OpRecord& op, Needs needs) {
  auto* hook = supply_hook.load();
  TORCH_CHECK(
      hook != nullptr,
      op.name,
      " needs values, and the dry driver computes none.");
  return hook(op.name, needs);
}

bool is_data_dependent(const OpRecord& op) {
  return std::find(kDataDependent.begin(), kDataDependent.end(), op.name) !=
         kDataDependent.end();
}

bool drops_statistics(
    const OpRecord& op, const std::vector<c10::IValue>& stack, size_t first) {
  constexpr size_t training = 5;  // position of the argument
  return (op.name == "aten::native_batch_norm" ||
          op.name == "aten::_native_batch_norm_legit") &&
         !stack[first + training].toBool();
}

at::Tensor without_memory(const at::Tensor& tensor) {
  return at::empty_strided(
      tensor.sizes(),
      tensor.strides(),
      tensor.options().device(c10::DeviceType::Meta).pinned_memory(false));
}

at::Tensor described_on_cpu(const at::Tensor& tensor) {
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(),
      tensor.storage().nbytes(),
      c10::DataPtr(nullptr, c10::Device(c10::DeviceType::CPU)),
      nullptr,
      /*resizable=*/false);
  auto described = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(std::move(storage)),
      c10::DispatchKeySet(c10::DispatchKey::CPU),
      tensor.dtype());
  described.unsafeGetTensorImpl()->set_sizes_and_strides(
      tensor.sizes(), tensor.strides(), tensor.storage_offset());
  if (tensor.requires_grad()) {
    described.set_requires_grad(true);
  }
  return described;
}

std::vector<at::Tensor> indices_of_mask(
    const OpRecord& op, const at::Tensor& mask) {
  const auto count = static_cast<int64_t>(supplied(op, Needs::size));
  const auto options = mask.options()
                           .dtype(at::kLong)
                           .device(c10::DeviceType::Meta)
                           .pinned_memory(false);
  std::vector<at::Tensor> indices;
  for (int64_t dim = 0; dim < mask.dim(); ++dim) {
    indices.push_back(at::empty({count}, options));
  }
  return indices;
}

}  // namespace neuron::dry

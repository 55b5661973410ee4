#include "dispatch/host_call.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <typeinfo>

#include "dispatch/dry.h"
#include "runtime/recorder.h"

namespace neuron {
namespace {

const c10::DispatchKeySet& hidden_keys() {
  static const c10::DispatchKeySet keys =
      c10::autograd_dispatch_keyset_with_ADInplaceOrView |
      c10::autocast_dispatch_keyset |
      c10::DispatchKeySet(
          {c10::DispatchKey::Python,
           c10::DispatchKey::PythonTLSSnapshot,
           c10::DispatchKey::Functionalize,
           c10::DispatchKey::FuncTorchBatched,
           c10::DispatchKey::FuncTorchVmapMode,
           c10::DispatchKey::FuncTorchGradWrapper,
           c10::DispatchKey::FuncTorchDynamicLayerBackMode,
           c10::DispatchKey::FuncTorchDynamicLayerFrontMode});
  return keys;
}

at::Tensor make_host_tensor(
    c10::intrusive_ptr<c10::StorageImpl> storage, const at::Tensor& like) {
  auto* from = like.unsafeGetTensorImpl();
  auto impl = c10::make_intrusive<c10::TensorImpl>(
      c10::Storage(std::move(storage)),
      c10::DispatchKeySet(
          runtime::is_dry() ? c10::DispatchKey::Meta : c10::DispatchKey::CPU),
      from->dtype());
  impl->set_sizes_and_strides(
      from->sizes(), from->strides(), from->storage_offset());
  if (C10_UNLIKELY(from->is_conj())) {
    impl->_set_conj(true);
  }
  if (C10_UNLIKELY(from->is_neg())) {
    impl->_set_neg(true);
  }
  if (C10_UNLIKELY(from->is_wrapped_number())) {
    impl->set_wrapped_number(true);
  }
  return at::Tensor(std::move(impl));
}

}  // namespace

bool is_dense(const at::Tensor& tensor) {
  constexpr c10::DispatchKeySet special(
      {c10::DispatchKey::Sparse,
       c10::DispatchKey::SparseCsr,
       c10::DispatchKey::Quantized,
       c10::DispatchKey::NestedTensor,
       c10::DispatchKey::ZeroTensor});
  return !tensor.key_set().has_any(special) && tensor.has_storage();
}

void HostCall::two_devices(const at::Tensor& tensor) const {
  const auto mine = device_ >= 0 ? device_at(device_) : tensor.device();
  const auto other = device_ >= 0 ? tensor.device() : *cpu_seen_;
  TORCH_CHECK(
      false,
      "Expected all tensors to be on the same device, but found at least two "
      "devices, ",
      mine,
      " and ",
      other,
      "! (when running ",
      op_.name,
      ") Move one of them, for example with .to(\"",
      mine,
      "\").");
}

void HostCall::on_device(c10::Device device) {
  if (device.type() != kNeuron) {
    return;
  }
  device_ = checked_index(device);
}

at::Tensor HostCall::alias_of_same(const at::Tensor& tensor, bool written) {
  // Beyond the fixed arguments come lists, where kernels do not compare.
  constexpr size_t kCompared = 8;
  const size_t count = std::min(entries_.size(), kCompared);
  for (size_t i = 0; i < count; ++i) {
    auto& entry = entries_[i];
    if (C10_LIKELY(
            entry.original.unsafeGetTensorImpl() !=
            tensor.unsafeGetTensorImpl())) {
      continue;
    }
    if (written && !entry.written && is_dense(tensor)) {
      auto storage = host_alias(
          tensor.storage().unsafeGetStorageImpl(), /*for_write=*/true);
      entry.data_before = storage->data();
      entry.alias.unsafeGetTensorImpl()->set_storage_keep_dtype(
          c10::Storage(std::move(storage)));
    }
    entry.written = entry.written || written;
    return entry.alias;
  }
  return {};
}

at::Tensor HostCall::to_host(at::Tensor tensor, bool written) {
  if (!tensor.defined()) {
    return tensor;
  }
  const auto device = tensor.device();
  if (C10_UNLIKELY(device.type() != kNeuron)) {
    const bool passes =
        device.type() == c10::DeviceType::CPU &&
        ((tensor.dim() == 0 && !written) || op_.takes_cpu_tensors);
    if (!passes) {
      cpu_seen_ = device;
      if (device_ >= 0) {
        two_devices(tensor);
      }
    }
    // Meta kernels take a CPU tensor as a number only.
    auto passed = runtime::is_dry() && tensor.dim() > 0
                      ? dry::without_memory(tensor)
                      : tensor;
    entries_.push_back({tensor, passed, nullptr, false});
    return passed;
  }
  if (C10_UNLIKELY(device_ < 0)) {
    device_ = device.index();
    if (cpu_seen_.has_value()) {
      device_ = -1;
      two_devices(tensor);
    }
  } else if (C10_UNLIKELY(device_ != device.index())) {
    two_devices(tensor);
  }
  if (auto same = alias_of_same(tensor, written); same.defined()) {
    return same;
  }
  at::Tensor alias;
  const void* data = nullptr;
  if (C10_LIKELY(is_dense(tensor))) {
    auto storage = host_alias(
        tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl(),
        written);
    data = storage->data();
    alias = make_host_tensor(std::move(storage), tensor);
  } else {
    TORCH_CHECK(
        !runtime::is_dry(),
        op_.name,
        " got a sparse, quantized or nested tensor; the dry driver has dense "
        "tensors only. Use the driver 'host' for this program.");
    alias = alias_special(tensor, written);
  }
  // Some kernels keep less when no gradient will be asked for.
  if (C10_UNLIKELY(tensor.requires_grad() && at::GradMode::is_enabled())) {
    alias.set_requires_grad(true);
  }
  entries_.push_back({std::move(tensor), alias, data, written});
  return alias;
}

std::vector<at::Tensor> HostCall::indices_of_mask(
    const at::Tensor& mask) const {
  return dry::indices_of_mask(op_, mask);
}

HostCall::Scope::Scope(const HostCall& call)
    : call_(call), exclude_(hidden_keys()) {
  const int device = call.device();
  auto& queue = runtime::current_queue(device);
  if (C10_UNLIKELY(!queue.idle())) {
    with_torch_errors([&] { queue.wait_idle(); });
  }
  if (C10_LIKELY(!call.results_on_cpu_ && !runtime::is_dry())) {
    memory_.emplace(device);
  }
  if (C10_UNLIKELY(runtime::recorder::enabled())) {
    recording_ = runtime::recorder::current_recording();
    start_ns_ = runtime::recorder::now_ns();
  }
}

HostCall::Scope::~Scope() {
  if (C10_UNLIKELY(start_ns_ != 0)) {
    const auto& queue = runtime::current_queue(call_.device());
    runtime::recorder::Record record{};
    record.op = call_.op_.id;
    record.queue = queue.id();
    record.device = queue.device();
    record.submit_ns = start_ns_;
    record.start_ns = start_ns_;
    record.end_ns = runtime::recorder::now_ns();
    record.thread = runtime::recorder::this_thread();
    record.frame = runtime::recorder::current_frame();
    runtime::recorder::add(record, recording_);
  }
}

void HostCall::finish() {
  for (auto& entry : entries_) {
    if (!entry.written) {
      continue;
    }
    if (C10_UNLIKELY(
            entry.data_before == nullptr && !is_dense(entry.original))) {
      finish_special(entry);
      continue;
    }
    auto* alias = entry.alias.unsafeGetTensorImpl();
    auto* original = entry.original.unsafeGetTensorImpl();
    auto* alias_storage = alias->unsafe_storage().unsafeGetStorageImpl();
    follow_alias(
        original->unsafe_storage().unsafeGetStorageImpl(),
        alias_storage,
        entry.data_before);
    if (C10_UNLIKELY(
            alias->sizes() != original->sizes() ||
            alias->strides() != original->strides() ||
            alias->storage_offset() != original->storage_offset())) {
      original->set_sizes_and_strides(
          alias->sizes(), alias->strides(), alias->storage_offset());
    }
  }
}

c10::Storage HostCall::storage_for(const at::Tensor& host, bool sole) {
  const auto& storage = host.storage();
  for (const auto& entry : entries_) {
    if (entry.original.device().type() == kNeuron && is_dense(entry.original) &&
        entry.alias.has_storage() &&
        entry.alias.storage().unsafeGetStorageImpl() ==
            storage.unsafeGetStorageImpl()) {
      return entry.original.storage();
    }
  }
  for (const auto& [from, to] : adopted_) {
    if (from.unsafeGetStorageImpl() == storage.unsafeGetStorageImpl()) {
      return to;
    }
  }
  const bool only_holder = sole && storage.use_count() == 1;
  c10::Storage taken(adopt_storage(
      c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(
          storage.unsafeGetStorageImpl()),
      device(),
      only_holder));
  adopted_.emplace_back(storage, taken);
  return taken;
}

at::Tensor HostCall::wrap(const at::Tensor& host, c10::Storage storage) {
  auto* from = host.unsafeGetTensorImpl();
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage),
      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      from->dtype());
  auto* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(
      from->sizes(), from->strides(), from->storage_offset());
  if (C10_UNLIKELY(from->is_conj())) {
    impl->_set_conj(true);
  }
  if (C10_UNLIKELY(from->is_neg())) {
    impl->_set_neg(true);
  }
  if (C10_UNLIKELY(from->is_wrapped_number())) {
    impl->set_wrapped_number(true);
  }
  return tensor;
}

at::Tensor HostCall::to_device(at::Tensor result) {
  // A kernel may return a tensor that somebody keeps, such as the sizes of a
  // nested tensor: its memory must stay where it is.
  const bool sole = result.use_count() == 1;
  return to_device(std::move(result), sole);
}

at::Tensor HostCall::to_device(at::Tensor result, bool sole) {
  const auto computed_on =
      runtime::is_dry() ? c10::DeviceType::Meta : c10::DeviceType::CPU;
  if (!result.defined() || result.device().type() != computed_on) {
    return result;
  }
  for (const auto& entry : entries_) {
    if (entry.alias.unsafeGetTensorImpl() == result.unsafeGetTensorImpl()) {
      return entry.original;
    }
  }
  if (C10_UNLIKELY(results_on_cpu_)) {
    return result;
  }
  if (C10_UNLIKELY(!is_dense(result))) {
    return wrap_special(result, sole);
  }
  return wrap(result, storage_for(result, sole));
}

}  // namespace neuron

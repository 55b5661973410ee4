#include "c10/storage.h"

#include <c10/core/impl/COW.h>

#include <algorithm>
#include <cstring>
#include <typeinfo>

namespace neuron {
namespace {

c10::intrusive_ptr<c10::StorageImpl> make_alias(
    c10::StorageImpl* storage, const void* data) {
  const auto device =
      runtime::is_dry() ? c10::DeviceType::Meta : c10::DeviceType::CPU;
  return c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(),
      storage->nbytes(),
      c10::DataPtr(const_cast<void*>(data), c10::Device(device)),
      runtime::is_dry() ? c10::GetAllocator(c10::DeviceType::Meta)
                        : scoped_host_allocator(),
      storage->resizable());
}

// Reads must not materialise a copy-on-write storage; writes must.
const void* data_for(c10::StorageImpl* storage, bool for_write) {
  if (runtime::is_dry()) [[unlikely]] {
    return nullptr;  // meta storages have sizes only
  }
  return for_write ? storage->mutable_data() : storage->data();
}

c10::intrusive_ptr<c10::StorageImpl> create_neuron_storage(
    c10::StorageImpl::use_byte_size_t use_byte_size,
    c10::SymInt size_bytes,
    c10::DataPtr data,
    c10::Allocator* allocator,
    bool resizable) {
  if (data == nullptr && allocator != nullptr) {
    return c10::make_intrusive<NeuronStorage>(
        use_byte_size, std::move(size_bytes), allocator, resizable);
  }
  return c10::make_intrusive<NeuronStorage>(
      use_byte_size,
      std::move(size_bytes),
      std::move(data),
      allocator,
      resizable);
}

const bool registered = [] {
  c10::SetStorageImplCreate(kNeuron, &create_neuron_storage);
  return true;
}();

}  // namespace

NeuronStorage::~NeuronStorage() {
  if (auto* alias = alias_.load(std::memory_order_acquire)) {
    c10::raw::intrusive_ptr::decref(alias);
  }
}

c10::intrusive_ptr<c10::StorageImpl> NeuronStorage::host_alias(bool for_write) {
  const void* memory = data_for(this, for_write);
  auto* alias = alias_.load(std::memory_order_acquire);
  if (C10_LIKELY(
          alias != nullptr && alias->data() == memory &&
          alias->nbytes() == nbytes() && alias->resizable() == resizable())) {
    return c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(alias);
  }
  auto fresh = make_alias(this, memory);
  auto* expected = alias;
  auto* wanted = fresh.get();
  c10::raw::intrusive_ptr::incref(wanted);
  if (alias_.compare_exchange_strong(
          expected, wanted, std::memory_order_acq_rel)) {
    // The old alias may be in use by a concurrent reader of the storage; a
    // storage that moves while another thread reads it is a race of theirs.
    if (alias != nullptr) {
      c10::raw::intrusive_ptr::decref(alias);
    }
    return fresh;
  }
  c10::raw::intrusive_ptr::decref(wanted);
  return c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(expected);
}

c10::intrusive_ptr<c10::StorageImpl> host_alias(
    c10::StorageImpl* storage, bool for_write) {
  if (C10_LIKELY(typeid(*storage) == typeid(NeuronStorage))) {
    return static_cast<NeuronStorage*>(storage)->host_alias(for_write);
  }
  return make_alias(storage, data_for(storage, for_write));
}

c10::intrusive_ptr<c10::StorageImpl> make_storage(int device, size_t nbytes) {
  return c10::make_intrusive<NeuronStorage>(
      c10::StorageImpl::use_byte_size_t(),
      nbytes,
      allocate_on(device, nbytes),
      device_allocator(),
      /*resizable=*/true);
}

c10::intrusive_ptr<c10::StorageImpl> adopt_storage(
    c10::intrusive_ptr<c10::StorageImpl> host, int device, bool only_holder) {
  const auto nbytes = host->nbytes();
  c10::DataPtr memory;
  if (runtime::is_dry()) {
    memory = allocate_on(device, nbytes);
  } else if (only_holder) {
    memory = adopt(
        host->set_data_ptr(
            c10::DataPtr(nullptr, c10::Device(c10::DeviceType::CPU))),
        nbytes,
        device);
  } else {
    // Somebody else keeps the host storage (a quantizer, a cache): share it.
    void* data = host->mutable_data();
    auto* keeper = new c10::intrusive_ptr<c10::StorageImpl>(std::move(host));
    memory = c10::DataPtr(
        data,
        keeper,
        [](void* kept) {
          delete static_cast<c10::intrusive_ptr<c10::StorageImpl>*>(kept);
        },
        device_at(device));
  }
  return c10::make_intrusive<NeuronStorage>(
      c10::StorageImpl::use_byte_size_t(),
      nbytes,
      std::move(memory),
      device_allocator(),
      /*resizable=*/true);
}

void resize_storage(c10::StorageImpl* storage, size_t nbytes) {
  TORCH_CHECK(
      storage->resizable(),
      "Trying to resize a storage of ",
      storage->nbytes(),
      " bytes that is not resizable, to ",
      nbytes,
      " bytes. Clone the tensor first.");
  const int device = storage->device().index();
  auto fresh = allocate_on(device, nbytes);
  const size_t kept = std::min(nbytes, storage->nbytes());
  if (kept > 0 && storage->data() != nullptr && !runtime::is_dry()) {
    with_torch_errors([&] { runtime::current_queue(device).wait_idle(); });
    std::memcpy(fresh.get(), storage->data(), kept);
  }
  storage->set_data_ptr_noswap(std::move(fresh));
  storage->set_nbytes(nbytes);
}

void follow_alias(
    c10::StorageImpl* storage,
    c10::StorageImpl* alias,
    const void* data_before) {
  if (C10_LIKELY(
          alias->data() == data_before &&
          alias->nbytes() == storage->nbytes())) {
    return;
  }
  const auto nbytes = alias->nbytes();
  if (runtime::is_dry()) {
    storage->set_data_ptr_noswap(
        allocate_on(storage->device().index(), nbytes));
  } else if (alias->data() != data_before) {
    void* moved_to = alias->mutable_data();
    auto memory = alias->set_data_ptr(
        c10::DataPtr(moved_to, c10::Device(c10::DeviceType::CPU)));
    storage->set_data_ptr_noswap(
        adopt(std::move(memory), nbytes, storage->device().index()));
  }
  storage->set_nbytes(nbytes);
}

}  // namespace neuron

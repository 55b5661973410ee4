// Storages of the neuron device and the CPU storages that alias them.
#pragma once

#include <ATen/core/TensorBase.h>
#include <c10/core/StorageImpl.h>

#include "c10/allocator.h"

namespace neuron {

// A device storage that remembers the one CPU storage over the same memory,
// so that every host kernel sees two views of a tensor as views of one
// storage (overlap checks, aliasing) and no alias is built twice.
class NeuronStorage final : public c10::StorageImpl {
 public:
  using c10::StorageImpl::StorageImpl;
  ~NeuronStorage() override;

  // The CPU storage over this memory as it is now. `for_write` materialises
  // a copy-on-write storage first.
  c10::intrusive_ptr<c10::StorageImpl> host_alias(bool for_write);

 private:
  std::atomic<c10::StorageImpl*> alias_{nullptr};
};

// The same for any storage of this device; one that core made without us has
// no memo, so its alias is fresh.
c10::intrusive_ptr<c10::StorageImpl> host_alias(
    c10::StorageImpl* storage, bool for_write);

// A resizable storage of `nbytes` fresh bytes on `device`.
c10::intrusive_ptr<c10::StorageImpl> make_storage(int device, size_t nbytes);

// A device storage over the memory of a CPU one: taken out of it when the
// caller is its only holder, else kept alive through it.
c10::intrusive_ptr<c10::StorageImpl> adopt_storage(
    c10::intrusive_ptr<c10::StorageImpl> host, int device, bool only_holder);

// storage.resize_(): fresh memory holding the old bytes that still fit.
void resize_storage(c10::StorageImpl* storage, size_t nbytes);

// After a host kernel wrote through `alias`: if it moved to other memory
// (out= was resized), `storage` follows.
void follow_alias(
    c10::StorageImpl* storage,
    c10::StorageImpl* alias,
    const void* data_before);

}  // namespace neuron

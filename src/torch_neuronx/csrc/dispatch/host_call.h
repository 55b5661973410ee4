// One op run by its CPU kernel on aliases of device memory.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/SmallVector.h>

#include <optional>

#include "c10/scratch.h"
#include "c10/storage.h"
#include "dispatch/observer.h"
#include "dispatch/op_record.h"

namespace neuron {

// Usage: to_host every tensor, build a HostCall::Scope, run the CPU kernel,
// leave the scope, finish(), then to_device every result. Nothing is copied:
// an alias shares the memory, and a fresh result's memory is taken over.
class HostCall {
 public:
  explicit HostCall(const OpRecord& op) : op_(op), mark_(scratch::mark()) {}
  ~HostCall() { scratch::leave(mark_); }
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;

  // The alias of `tensor`; a CPU tensor passes if it is 0-dim or the op takes
  // CPU tensors, anything else is an error about two devices.
  at::Tensor to_host(at::Tensor tensor, bool written);

  // Files a boolean index of an indexing op as what it costs the chip.
  void note_if_mask(const std::optional<at::Tensor>& index) const {
    if (op_.takes_masks && index.has_value() && index->defined() &&
        (index->scalar_type() == c10::ScalarType::Bool ||
         index->scalar_type() == c10::ScalarType::Byte)) {
      note_mask(op_);
    }
  }

  // In a dry run: the indices that stand for a boolean one.
  std::vector<at::Tensor> indices_of_mask(const at::Tensor& mask) const;

  // Names the device where no tensor does, and checks that all agree.
  void on_device(c10::Device device);
  // The op was asked for results on the CPU.
  void results_on_cpu() { results_on_cpu_ = true; }
  int device() const {
    return device_ >= 0 ? device_ : runtime::current_device();
  }

  // -1: no argument named a neuron device.
  int named_device() const { return device_; }

  // Waits until earlier work of the device's current queue is done, then
  // hides the host kernel from autograd, autocast, modes and functorch, and
  // lets its allocations be device memory.
  class Scope {
   public:
    explicit Scope(const HostCall& call);
    ~Scope();

   private:
    const HostCall& call_;
    int64_t start_ns_ = 0;  // 0: not recorded
    uint64_t recording_ = 0;
    c10::impl::ExcludeDispatchKeyGuard exclude_;
    std::optional<HostScope> memory_;
    observer::Pause unseen_;  // what the kernel itself calls
  };

  // Gives metadata and moved memory of written aliases back to the originals.
  void finish();
  at::Tensor to_device(at::Tensor result);
  // `sole`: nobody but this call holds the result, so its memory can be taken.
  at::Tensor to_device(at::Tensor result, bool sole);

 private:
  struct Entry {
    at::Tensor original;
    at::Tensor alias;
    const void* data_before;
    bool written;
  };
  // The alias that another argument already has, if it is this very tensor:
  // kernels ask whether `out` is `self`.
  at::Tensor alias_of_same(const at::Tensor& tensor, bool written);
  at::Tensor wrap(const at::Tensor& host, c10::Storage storage);
  at::Tensor wrap_special(const at::Tensor& host, bool sole);
  at::Tensor alias_special(const at::Tensor& tensor, bool written);
  void finish_special(const Entry& entry);
  c10::Storage storage_for(const at::Tensor& host, bool sole);
  [[noreturn]] void two_devices(const at::Tensor& tensor) const;

  const OpRecord& op_;
  size_t mark_;
  int device_ = -1;
  bool results_on_cpu_ = false;
  std::optional<c10::Device> cpu_seen_;
  c10::SmallVector<Entry, 6> entries_;
  // Fresh host storages already taken over: two results may share one.
  c10::SmallVector<std::pair<c10::Storage, c10::Storage>, 2> adopted_;
};

// True for a tensor whose memory is one strided buffer.
bool is_dense(const at::Tensor& tensor);

}  // namespace neuron

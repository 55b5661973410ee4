// Device values of the neuron backend in c10's terms.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include "runtime/device.h"
#include "runtime/queue.h"

namespace neuron {

constexpr c10::DeviceType kNeuron = c10::DeviceType::PrivateUse1;

inline c10::Device device_at(int index) {
  return c10::Device(kNeuron, static_cast<c10::DeviceIndex>(index));
}

inline c10::Device current_device() {
  return device_at(runtime::current_device());
}

// The index of `device`, the current one when it names none; raises for one
// that does not exist.
int checked_index(c10::Device device);

// A c10 stream is a queue: its id is the queue's id, 0 being the default.
runtime::Queue& queue_of(c10::Stream stream);
c10::Stream stream_of(const runtime::Queue& queue);

// Runs `call`, turning the runtime's exceptions into PyTorch's classes, so
// that Python sees torch.OutOfMemoryError, IndexError, RuntimeError.
[[noreturn]] void rethrow_as_torch();

template <class F>
auto with_torch_errors(F&& call) -> decltype(call()) {
  try {
    return call();
  } catch (...) {
    rethrow_as_torch();
  }
}

}  // namespace neuron

// The device guard: devices, streams and events of the neuron backend as
// c10, torch.Stream, torch.Event and torch.accelerator reach them.
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceCapability.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "c10/device.h"
#include "runtime/clock.h"
#include "runtime/event.h"
#include "runtime/memory.h"

namespace neuron {
namespace {

runtime::Event* as_event(void* event) {
  return static_cast<runtime::Event*>(event);
}

c10::Stream pooled_stream(c10::Device device, int priority) {
  return with_torch_errors([&] {
    return stream_of(runtime::queue_from_pool(checked_index(device), priority));
  });
}

class NeuronGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kNeuron; }

  c10::Device exchangeDevice(c10::Device device) const override {
    TORCH_CHECK(device.type() == kNeuron, "Expected neuron, got ", device);
    return with_torch_errors(
        [&] { return device_at(runtime::exchange_device(device.index())); });
  }

  c10::Device getDevice() const override { return current_device(); }

  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.type() == kNeuron, "Expected neuron, got ", device);
    with_torch_errors([&] { runtime::set_current_device(device.index()); });
  }

  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0 && device.index() < runtime::device_count()) {
      runtime::set_current_device(device.index());
    }
  }

  c10::Stream getStream(c10::Device device) const override {
    return stream_of(runtime::current_queue(checked_index(device)));
  }

  c10::Stream getDefaultStream(c10::Device device) const override {
    return stream_of(runtime::default_queue(checked_index(device)));
  }

  c10::Stream getStreamFromGlobalPool(
      c10::Device device, bool high_priority) const override {
    return pooled_stream(device, high_priority ? -1 : 0);
  }

  c10::Stream getNewStream(c10::Device device, int priority) const override {
    // Queues live for ever, so streams made in a loop come from the pool.
    return pooled_stream(device, priority);
  }

  c10::Stream exchangeStream(c10::Stream stream) const override {
    auto& queue = queue_of(stream);
    const auto previous = stream_of(runtime::current_queue(queue.device()));
    runtime::set_current_queue(queue);
    return previous;
  }

  // Draining first keeps work that a foreign library runs by hand behind the
  // work queued before it.
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    auto& queue = queue_of(stream);
    with_torch_errors([&] { queue.wait_idle(); });
    return &queue;
  }

  void destroyEvent(
      void* event, const c10::DeviceIndex) const noexcept override {
    delete as_event(event);
  }

  void record(
      void** event,
      const c10::Stream& stream,
      const c10::DeviceIndex,
      const c10::EventFlag flag) const override {
    with_torch_errors([&] {
      if (*event == nullptr) {
        *event = new runtime::Event(flag == c10::EventFlag::BACKEND_DEFAULT);
      }
      as_event(*event)->record(queue_of(stream));
    });
  }

  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) {
      with_torch_errors([&] { as_event(event)->block(queue_of(stream)); });
    }
  }

  bool queryEvent(void* event) const override {
    return event == nullptr ||
           with_torch_errors([&] { return as_event(event)->query(); });
  }

  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(runtime::device_count());
  }

  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    return {};
  }

  bool queryStream(const c10::Stream& stream) const override {
    return queue_of(stream).idle();
  }

  void synchronizeStream(const c10::Stream& stream) const override {
    auto& queue = queue_of(stream);
    with_torch_errors([&] { queue.wait_idle(); });
    if (runtime::clock::running()) {
      runtime::clock::host_wait(
          runtime::clock::now(queue.device(), queue.id()));
    }
  }

  bool isStreamCapturing(const c10::Stream&) const override { return false; }

  void synchronizeEvent(void* event) const override {
    if (event != nullptr) {
      with_torch_errors([&] { as_event(event)->synchronize(); });
    }
  }

  void synchronizeDevice(const c10::DeviceIndex index) const override {
    with_torch_errors([&] {
      runtime::synchronize_device(checked_index(device_at(index)));
      runtime::clock::synchronize(checked_index(device_at(index)));
    });
  }

  void recordDataPtrOnStream(
      const c10::DataPtr& data, const c10::Stream& stream) const override {
    static_cast<c10::DeviceAllocator*>(c10::GetAllocator(kNeuron))
        ->recordStream(data, stream);
  }

  double elapsedTime(
      void* start, void* end, const c10::DeviceIndex) const override {
    TORCH_CHECK(
        start != nullptr && end != nullptr,
        "elapsed_time needs two recorded events; ",
        start == nullptr ? "the first" : "the second",
        " was never recorded. Call event.record() first.");
    return with_torch_errors(
        [&] { return as_event(start)->elapsed_ms(*as_event(end)); });
  }
};

// Not C10_REGISTER_GUARD_IMPL, whose static object would be destroyed at exit
// while tensors still live.
const bool registered = [] {
  c10::impl::device_guard_impl_registry[static_cast<size_t>(kNeuron)].store(
      new NeuronGuard());
  return true;
}();

}  // namespace
}  // namespace neuron

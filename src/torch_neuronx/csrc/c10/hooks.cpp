// What ATen asks the accelerator: devices, generators, pinned memory, storage
// resizing.
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include <cstring>

#include "c10/generator.h"
#include "c10/host_allocator.h"
#include "c10/storage.h"
#include "runtime/memory.h"

namespace neuron {
namespace {

class NeuronHooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }

  bool isAvailable() const override { return runtime::device_count() > 0; }

  bool hasPrimaryContext(c10::DeviceIndex index) const override {
    return index < runtime::device_count() && runtime::used();
  }

  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(runtime::device_count());
  }

  void setCurrentDevice(c10::DeviceIndex index) const override {
    with_torch_errors([&] { runtime::set_current_device(index); });
  }

  c10::DeviceIndex getCurrentDevice() const override {
    return static_cast<c10::DeviceIndex>(runtime::current_device());
  }

  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    return with_torch_errors([&] {
      return static_cast<c10::DeviceIndex>(runtime::exchange_device(index));
    });
  }

  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    // -1 asks for no change and names the device that stays current.
    return index < 0 ? getCurrentDevice() : exchangeDevice(index);
  }

  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }

  c10::Allocator* getPinnedMemoryAllocator() const override {
    return pinned_allocator();
  }

  c10::Device getDeviceFromPtr(void* data) const override {
    for (int device = 0; device < runtime::device_count(); ++device) {
      if (runtime::find_block(device, data) != nullptr) {
        return device_at(device);
      }
    }
    // Foreign memory: the host can reach all of it, so it may join any device.
    return current_device();
  }

  const at::Generator& getDefaultGenerator(
      c10::DeviceIndex index) const override {
    return default_generator(index < 0 ? runtime::current_device() : index);
  }

  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return new_generator(checked_index(c10::Device(kNeuron, index)));
  }

  void resizePrivateUse1Bytes(
      const c10::Storage& storage, size_t nbytes) const override {
    resize_storage(storage.unsafeGetStorageImpl(), nbytes);
  }
};

const bool registered = [] {
  at::RegisterPrivateUse1HooksInterface(new NeuronHooks());
  return true;
}();

}  // namespace
}  // namespace neuron

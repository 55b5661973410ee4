#include "runtime/device.h"

#include <pthread.h>

#include <atomic>

#include "runtime/error.h"

namespace neuron::runtime {
namespace {

struct State {
  Config config;
};

State& state() {
  static auto* leaked = new State();
  return *leaked;
}

std::atomic<int> num_devices{0};
thread_local int current = 0;

void after_fork_in_child() {
  if (used()) {
    detail::is_bad_fork = true;
  }
}

}  // namespace

void configure(Config config) {
  if (used()) {
    throw std::runtime_error(
        "The neuron devices are in use: choose driver, instance and cores "
        "before the first tensor is made.");
  }
  static const int registered =
      pthread_atfork(nullptr, nullptr, &after_fork_in_child);
  (void)registered;
  state().config = std::move(config);
  set_backing(state().config.backing);
  num_devices = static_cast<int>(state().config.devices.size());
}

void set_backing(MemoryBacking backing) {
  state().config.backing = backing;
  detail::is_dry = backing == MemoryBacking::address_only;
}

const Config& config() noexcept { return state().config; }

bool configured() noexcept {
  return num_devices.load(std::memory_order_relaxed) > 0;
}

int device_count() noexcept {
  return num_devices.load(std::memory_order_relaxed);
}

const DeviceSpec& device_spec(int device) {
  if (device < 0 || device >= device_count()) {
    throw InvalidDevice(device, device_count());
  }
  return state().config.devices[static_cast<size_t>(device)];
}

int current_device() noexcept { return current; }

void set_current_device(int device) {
  if (device < 0 || device >= device_count()) {
    throw InvalidDevice(device, device_count());
  }
  current = device;
}

int exchange_device(int device) {
  const int previous = current;
  set_current_device(device);
  return previous;
}

}  // namespace neuron::runtime

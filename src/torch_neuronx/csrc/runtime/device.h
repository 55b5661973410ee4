// The devices of this process: logical cores of a modelled chip.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/error.h"

namespace neuron::runtime {

namespace detail {
inline constinit std::atomic<bool> is_used{false};
inline constinit std::atomic<bool> is_bad_fork{false};
inline constinit std::atomic<bool> is_dry{false};
}  // namespace detail

struct DeviceSpec {
  std::string name;
  int64_t memory_capacity;  // bytes of modelled HBM
};

// committed: real host memory. address_only: addresses that are counted but
// have nothing behind them (the dry driver).
enum class MemoryBacking { committed, address_only };

struct Config {
  std::vector<DeviceSpec> devices;
  MemoryBacking backing = MemoryBacking::committed;
  bool launch_blocking = false;
  double wait_deadline_seconds = 600;
  int64_t max_split_size = -1;  // bytes; larger free blocks are not split
};

// Sets the machine up; again only while no device was used.
void configure(Config config);
const Config& config() noexcept;
bool configured() noexcept;
// Changes what is behind addresses from now on; the caller made sure that no
// segment exists.
void set_backing(MemoryBacking backing);
// Whether memory is addresses only, so that nothing may be read or computed.
inline bool is_dry() noexcept {
  return detail::is_dry.load(std::memory_order_relaxed);
}

int device_count() noexcept;
// Throws InvalidDevice.
const DeviceSpec& device_spec(int device);

// The calling thread's device.
int current_device() noexcept;
void set_current_device(int device);
int exchange_device(int device);

// A process is used once it allocated or launched anything. Its forked
// children are bad: streams do not survive fork.
inline void mark_used() noexcept {
  if (!detail::is_used.load(std::memory_order_relaxed)) [[unlikely]] {
    detail::is_used.store(true);
  }
}
inline bool used() noexcept {
  return detail::is_used.load(std::memory_order_relaxed);
}
inline bool in_bad_fork() noexcept {
  return detail::is_bad_fork.load(std::memory_order_relaxed);
}
// Throws BadFork in a bad child; a load and a branch otherwise.
inline void check_fork() {
  if (in_bad_fork()) [[unlikely]] {
    throw BadFork();
  }
}

}  // namespace neuron::runtime

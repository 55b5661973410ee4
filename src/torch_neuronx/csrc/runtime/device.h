// The devices of this process: logical cores of a modelled chip.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace neuron::runtime {

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

int device_count() noexcept;
// Throws InvalidDevice.
const DeviceSpec& device_spec(int device);

// The calling thread's device.
int current_device() noexcept;
void set_current_device(int device);
int exchange_device(int device);

// A process is used once it allocated or launched anything. Its forked
// children are bad: streams do not survive fork.
void mark_used() noexcept;
bool used() noexcept;
bool in_bad_fork() noexcept;
// Throws BadFork in a bad child; a load and a branch otherwise.
void check_fork();

}  // namespace neuron::runtime

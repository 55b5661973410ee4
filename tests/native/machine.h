// What runtime tests set up: devices, gates that hold a queue up, clocks.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/launch.h"
#include "runtime/memory.h"
#include "runtime/op.h"

namespace neuron::test {

constexpr int64_t kTestMiB = int64_t{1} << 20;

inline runtime::Config machine(
    int num_devices = 1, int64_t memory_capacity = 1024 * kTestMiB) {
  runtime::Config config;
  for (int i = 0; i < num_devices; ++i) {
    config.devices.push_back({"test core", memory_capacity});
  }
  config.wait_deadline_seconds = 30;
  return config;
}

// Holds tasks until it is opened, and tells when one has arrived.
class Gate {
 public:
  void open() {
    {
      const std::lock_guard<std::mutex> lock(state_->mutex);
      state_->is_open = true;
    }
    state_->changed.notify_all();
  }

  void wait_for_arrival() {
    std::unique_lock<std::mutex> lock(state_->mutex);
    state_->changed.wait(lock, [this] { return state_->has_arrived; });
  }

  // A closure that passes once the gate is open.
  auto pass() const {
    return [state = state_] {
      std::unique_lock<std::mutex> lock(state->mutex);
      state->has_arrived = true;
      state->changed.notify_all();
      state->changed.wait(lock, [&] { return state->is_open; });
    };
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_open = false;
    bool has_arrived = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// Queues the gate and returns when the worker stands before it.
inline void hold(runtime::Queue& queue, Gate& gate) {
  static const auto op = runtime::op_id("test::gate");
  queue.submit(runtime::Task(gate.pass(), op));
  gate.wait_for_arrival();
}

inline void spin_for(std::chrono::microseconds duration) {
  const auto end = std::chrono::steady_clock::now() + duration;
  while (std::chrono::steady_clock::now() < end) {
  }
}

}  // namespace neuron::test

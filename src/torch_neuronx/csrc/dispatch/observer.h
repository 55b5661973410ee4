// Watches which ops run on the device, while asked to: counts them by
// signature and by where they were called, and moves the modelled clock.
//
// PyTorch's dispatcher shows every call with its arguments; `executed` says
// which of them was done here (the others are composites of those). A backward
// op belongs to the line of its forward op.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "dispatch/signature.h"

namespace neuron::observer {

// Where a call came from. 0 is unknown.
struct Origin {
  uint32_t line = 0;    // of Python, numbered by the line hook
  uint32_t module = 0;  // numbered by who sets it
  bool backward = false;
  bool operator==(const Origin&) const = default;
};

struct Count {
  uint32_t signature;
  Origin origin;
  uint64_t calls;
};

struct Price {
  int64_t launch_ns;
  int64_t work_ns;
  bool host_waits;  // for the result
};

namespace detail {
inline constinit std::atomic<bool> is_on{false};
inline constinit thread_local int paused = 0;
void executed(uint32_t op);
}  // namespace detail

void start();
void stop();
inline bool on() noexcept {
  return detail::is_on.load(std::memory_order_relaxed);
}
std::vector<Count> counts();

// While one lives, calls of this thread are not looked at.
class Pause {
 public:
  Pause() noexcept { ++detail::paused; }
  ~Pause() { --detail::paused; }
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;
};

// The op of the innermost call is done by a kernel of this device.
inline void executed(uint32_t op) {
  if (on()) [[unlikely]] {
    detail::executed(op);
  }
}

// Work that no op call shows, such as a collective, on `queue`.
void add(const SignatureKey& key, int device, uint32_t queue);

// The module that this thread's calls belong to; returns the one before.
uint32_t set_module(uint32_t module) noexcept;
// Of the call that runs in this thread, and its op (0: none).
Origin current_origin();
uint32_t current_op();

// Gives the number of the Python line that is calling, 0 outside Python.
void set_line_hook(uint32_t (*hook)());
// Prices a signature, once for each.
void set_price_hook(Price (*hook)(uint32_t signature));

}  // namespace neuron::observer

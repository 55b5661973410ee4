// Modelled time: how far each queue, and the host, would be on the chip.
//
// Nothing here measures. Work advances its queue by what the model of the chip
// says; waits between queues and host waits move clocks forward.
#pragma once

#include <atomic>
#include <cstdint>

namespace neuron::runtime::clock {

namespace detail {
inline constinit std::atomic<bool> is_running{false};
}

inline bool running() noexcept {
  return detail::is_running.load(std::memory_order_relaxed);
}
// Stopped clocks keep their times.
void set_running(bool on) noexcept;

// Work that the host starts in `launch_ns` and the queue does in `work_ns`.
// The host is free again after the launch; the queue waits for it.
void advance(int device, uint32_t queue, int64_t launch_ns, int64_t work_ns);
int64_t now(int device, uint32_t queue);
// The latest of all queues of `device`.
int64_t now(int device);
// `queue` goes on at `ns` at the earliest; a time below zero changes nothing.
void wait(int device, uint32_t queue, int64_t ns);
// The host goes on at `ns` at the earliest.
void host_wait(int64_t ns);
// The host waits for all queues of `device`.
void synchronize(int device);

}  // namespace neuron::runtime::clock

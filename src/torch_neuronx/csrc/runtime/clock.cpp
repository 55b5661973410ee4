#include "runtime/clock.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace neuron::runtime::clock {
namespace {

struct State {
  std::mutex mutex;
  std::map<std::pair<int, uint32_t>, int64_t> queues;
  int64_t host = 0;
};

State& state() {
  static auto* leaked = new State();
  return *leaked;
}

int64_t latest(const State& all, int device) {
  int64_t last = 0;
  for (auto at = all.queues.lower_bound({device, 0});
       at != all.queues.end() && at->first.first == device;
       ++at) {
    last = std::max(last, at->second);
  }
  return last;
}

}  // namespace

void set_running(bool on) noexcept { detail::is_running = on; }

void advance(int device, uint32_t queue, int64_t launch_ns, int64_t work_ns) {
  auto& all = state();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto& mine = all.queues[{device, queue}];
  mine = std::max(mine, all.host) + launch_ns + work_ns;
  all.host += launch_ns;
}

int64_t now(int device, uint32_t queue) {
  auto& all = state();
  std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.queues.find({device, queue});
  return found == all.queues.end() ? 0 : found->second;
}

int64_t now(int device) {
  auto& all = state();
  std::lock_guard<std::mutex> lock(all.mutex);
  return latest(all, device);
}

void wait(int device, uint32_t queue, int64_t ns) {
  if (!running() || ns < 0) {
    return;
  }
  auto& all = state();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto& mine = all.queues[{device, queue}];
  mine = std::max(mine, ns);
}

void host_wait(int64_t ns) {
  if (!running() || ns < 0) {
    return;
  }
  auto& all = state();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.host = std::max(all.host, ns);
}

void synchronize(int device) {
  if (!running()) {
    return;
  }
  auto& all = state();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.host = std::max(all.host, latest(all, device));
}

}  // namespace neuron::runtime::clock

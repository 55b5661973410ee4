// The queues of each device: default, pooled, made on demand.
#include <array>
#include <deque>

#include "runtime/queue.h"

namespace neuron::runtime {
namespace {

constexpr uint32_t kPool = 32;
constexpr size_t kMaxDevices = 128;  // what c10's 8-bit device index can name

struct DeviceQueues {
  std::mutex mutex;
  std::deque<Queue*> all;  // by id: default, pools, then new ones
  std::array<uint32_t, 2> next{0, 0};
};

std::array<std::atomic<DeviceQueues*>, kMaxDevices> devices{};
std::mutex creation;

thread_local std::array<Queue*, kMaxDevices> current_queues{};

DeviceQueues& queues_of(int device) {
  device_spec(device);
  auto& slot = devices[static_cast<size_t>(device)];
  if (auto* made = slot.load(std::memory_order_acquire)) {
    return *made;
  }
  std::lock_guard<std::mutex> lock(creation);
  if (auto* made = slot.load(std::memory_order_acquire)) {
    return *made;
  }
  auto* made = new DeviceQueues();
  made->all.push_back(new Queue(0, device, 0));
  for (uint32_t i = 1; i <= 2 * kPool; ++i) {
    made->all.push_back(new Queue(i, device, i <= kPool ? 0 : -1));
  }
  slot.store(made, std::memory_order_release);
  return *made;
}

}  // namespace

Queue& default_queue(int device) { return *queues_of(device).all.front(); }

Queue& current_queue(int device) {
  auto*& queue = current_queues[static_cast<size_t>(device) % kMaxDevices];
  if (queue == nullptr) {
    queue = &default_queue(device);
  }
  return *queue;
}

void set_current_queue(Queue& queue) {
  current_queues[static_cast<size_t>(queue.device())] = &queue;
}

Queue& queue_by_id(int device, uint32_t id) {
  auto& all = queues_of(device);
  std::lock_guard<std::mutex> lock(all.mutex);
  if (id >= all.all.size()) {
    throw std::runtime_error(
        "neuron:" + std::to_string(device) + " has no stream " +
        std::to_string(id) + ". Make one with torch.neuron.Stream().");
  }
  return *all.all[id];
}

Queue& queue_from_pool(int device, int priority) {
  check_fork();
  auto& all = queues_of(device);
  std::lock_guard<std::mutex> lock(all.mutex);
  const uint32_t urgent = priority < 0 ? 1 : 0;
  const uint32_t id = 1 + urgent * kPool + all.next[urgent]++ % kPool;
  return *all.all[id];
}

Queue& new_queue(int device, int priority) {
  auto& all = queues_of(device);
  std::lock_guard<std::mutex> lock(all.mutex);
  all.all.push_back(
      new Queue(static_cast<uint32_t>(all.all.size()), device, priority));
  return *all.all.back();
}

std::vector<Queue*> queues(int device) {
  auto& all = queues_of(device);
  std::lock_guard<std::mutex> lock(all.mutex);
  return {all.all.begin(), all.all.end()};
}

void synchronize_device(int device) {
  check_fork();
  const auto all = queues(device);
  for (auto* queue : all) {
    queue->wait_passed(queue->submitted());
  }
  for (auto* queue : all) {
    queue->wait_idle();
  }
}

}  // namespace neuron::runtime

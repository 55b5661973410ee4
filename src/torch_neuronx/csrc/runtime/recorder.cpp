#include "runtime/recorder.h"

#include <chrono>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

namespace neuron::runtime::recorder {

std::atomic<bool> is_enabled{false};

namespace {

struct State {
  std::mutex mutex;
  std::atomic<uint64_t> recording{0};
  bool with_frames = false;
  size_t capacity = 0;
  Stopped collected{};
  std::unordered_map<std::string, int> frame_index;
  std::atomic<std::string (*)()> hook{nullptr};
};

State& state() {
  static auto* leaked = new State();
  return *leaked;
}

}  // namespace

void start(bool with_frames, size_t capacity) {
  auto& all = state();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.with_frames = with_frames;
  all.capacity = capacity;
  all.collected = {};
  all.frame_index.clear();
  ++all.recording;
  is_enabled = true;
}

Stopped stop() {
  auto& all = state();
  std::lock_guard<std::mutex> lock(all.mutex);
  is_enabled = false;
  return std::exchange(all.collected, {});
}

uint64_t current_recording() noexcept {
  return state().recording.load(std::memory_order_relaxed);
}

void add(const Record& record, uint64_t recording) {
  auto& all = state();
  std::lock_guard<std::mutex> lock(all.mutex);
  if (!is_enabled.load(std::memory_order_relaxed) ||
      recording != all.recording.load(std::memory_order_relaxed)) {
    return;  // finished after stop()
  }
  if (all.collected.records.size() < all.capacity) {
    all.collected.records.push_back(record);
  } else {
    ++all.collected.dropped;
  }
}

int current_frame() {
  auto& all = state();
  {
    std::lock_guard<std::mutex> lock(all.mutex);
    if (!all.with_frames) {
      return -1;
    }
  }
  const auto line = python_frame();
  if (line.empty()) {
    return -1;
  }
  std::lock_guard<std::mutex> lock(all.mutex);
  const auto [found, added] = all.frame_index.try_emplace(
      line, static_cast<int>(all.collected.frames.size()));
  if (added) {
    all.collected.frames.push_back(line);
  }
  return found->second;
}

void set_frame_hook(std::string (*hook)()) { state().hook = hook; }

std::string python_frame() {
  auto* hook = state().hook.load();
  return hook != nullptr ? hook() : std::string();
}

int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

uint64_t this_thread() noexcept {
  return std::hash<std::thread::id>()(std::this_thread::get_id());
}

}  // namespace neuron::runtime::recorder

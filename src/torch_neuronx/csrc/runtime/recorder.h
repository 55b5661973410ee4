// Records launched work when asked to; one relaxed load when not.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace neuron::runtime::recorder {

struct Record {
  uint32_t op;  // op_name(op)
  uint32_t queue;
  int device;
  int64_t submit_ns;  // steady clock
  int64_t start_ns;
  int64_t end_ns;
  uint64_t thread;  // that submitted
  int frame;        // index into Stopped::frames, -1 for none
};

struct Stopped {
  std::vector<Record> records;
  std::vector<std::string> frames;
  uint64_t dropped;  // records that did not fit the capacity
};

extern std::atomic<bool> is_enabled;
inline bool enabled() noexcept {
  return is_enabled.load(std::memory_order_relaxed);
}

void start(bool with_frames, size_t capacity);
Stopped stop();

// Files one piece of finished work of the recording that was running when it
// was submitted; dropped if that recording has ended.
void add(const Record& record, uint64_t recording);
// Counts recordings.
uint64_t current_recording() noexcept;
// The index of the calling Python line, -1 when frames are not wanted.
int current_frame();

// Gives the Python line that is calling; set by the bindings.
void set_frame_hook(std::string (*hook)());
std::string python_frame();

int64_t now_ns() noexcept;
uint64_t this_thread() noexcept;

}  // namespace neuron::runtime::recorder

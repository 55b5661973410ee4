// Events: marks in a queue's order.
#pragma once

#include <memory>

#include "runtime/queue.h"

namespace neuron::runtime {

// Versioned: record() makes a new mark; who waits for an older one keeps
// waiting for that one.
class Event {
 public:
  explicit Event(bool timing) : timing_(timing) {}

  // Marks the work given to `queue` so far.
  void record(Queue& queue);
  // Later work of `queue` waits for the mark as it is now.
  void block(Queue& queue) const;
  // True once all marked work ran; true for an event never recorded.
  bool query() const;
  void synchronize() const;
  // Milliseconds of real time between the two marks.
  double elapsed_ms(const Event& end) const;
  // Nanoseconds on the modelled clock at the mark; -1 if it stood still.
  int64_t modelled_ns() const;

 private:
  struct Mark {
    Queue* queue;
    uint64_t ticket;
    std::atomic<int64_t> reached_ns{0};  // 0: not reached
    int64_t modelled_ns = -1;
  };
  std::shared_ptr<Mark> mark() const;

  const bool timing_;
  mutable std::mutex mutex_;
  std::shared_ptr<Mark> mark_;
};

}  // namespace neuron::runtime

// Streams: queues of ordered work.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/device.h"
#include "runtime/error.h"
#include "runtime/task.h"

namespace neuron::runtime {

// Work of one queue runs in the order it was given. Work may run in the
// calling thread when nothing is pending before it (see may_run_inline);
// otherwise the queue's worker thread runs it. Queues live for ever.
class Queue {
 public:
  Queue(uint32_t id, int device, int priority);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  uint32_t id() const noexcept { return id_; }
  int device() const noexcept { return device_; }
  int priority() const noexcept { return priority_; }
  bool is_default() const noexcept { return id_ == 0; }

  // The host driver has no second processor: handing work of the default
  // queue to a thread would only add the hand-over. Side queues are for
  // overlap, so theirs goes to the worker unless launches block.
  bool may_run_inline() const noexcept { return runs_inline_ && idle(); }

  bool idle() const noexcept {
    return completed_.load(std::memory_order_acquire) ==
           submitted_.load(std::memory_order_relaxed);
  }

  // Queues `task` and returns its ticket. Waits, up to the deadline, while the
  // ring is full.
  uint64_t submit(Task task);

  // Tickets count submitted tasks from 1.
  uint64_t submitted() const noexcept {
    return submitted_.load(std::memory_order_acquire);
  }
  uint64_t completed() const noexcept {
    return completed_.load(std::memory_order_acquire);
  }

  // Both throw DeadlineExceeded, and a parked error once, as AsyncError.
  void wait_idle();
  void wait_for(uint64_t ticket);
  // Waits without taking the parked error: for other queues' workers.
  void wait_passed(uint64_t ticket);

 private:
  static constexpr size_t kSlots = 4096;

  uint64_t try_submit(Task& task);  // 0 if the ring is full
  bool has_room() const noexcept;
  void work();
  void run(Task& task);
  template <class F>
  void wait_until(F&& is_true, const char* what);
  void rethrow_parked();
  std::string deadline_text(const char* what) const;

  const uint32_t id_;
  const int device_;
  const int priority_;
  const bool runs_inline_;
  std::atomic<uint64_t> submitted_{0};
  std::atomic<uint64_t> completed_{0};
  std::atomic<uint32_t> running_op_{0};
  std::atomic<uint32_t> num_waiting_{0};

  std::mutex mutex_;
  std::condition_variable work_ready_;
  std::condition_variable progressed_;
  std::vector<Task> ring_;
  bool has_worker_ = false;
  bool is_asleep_ = false;  // the worker, waiting for work_ready_
  std::unique_ptr<AsyncError> parked_;
  std::atomic<bool> has_parked_{false};
};

Queue& default_queue(int device);
// The calling thread's queue of `device`.
Queue& current_queue(int device);
void set_current_queue(Queue& queue);
// Throws std::runtime_error when the device has no such queue.
Queue& queue_by_id(int device, uint32_t id);
// Round robin over 32 queues per priority class (below zero is urgent).
Queue& queue_from_pool(int device, int priority);
Queue& new_queue(int device, int priority);
std::vector<Queue*> queues(int device);

// Called in a thread that is about to block, and after it blocked with what
// the first returned: for Python's lock, which queued work may need.
void set_wait_hooks(void* (*before)(), void (*after)(void*));

// Waits for all queues of the device, then throws the first parked error.
void synchronize_device(int device);

}  // namespace neuron::runtime

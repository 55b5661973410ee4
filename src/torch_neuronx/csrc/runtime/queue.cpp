#include "runtime/queue.h"

#include <chrono>
#include <thread>

#include "runtime/op.h"

namespace neuron::runtime {
namespace {

std::chrono::steady_clock::time_point deadline() {
  return std::chrono::steady_clock::now() +
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(
             std::chrono::duration<double>(config().wait_deadline_seconds));
}

constexpr int kSpins = 2000; // a few microseconds

} // namespace

Queue::Queue(uint32_t id, int device, int priority)
    : id_(id),
      device_(device),
      priority_(priority),
      runs_inline_(id == 0 || config().launch_blocking) {}

void Queue::submit(Task task) {
  check_fork();
  mark_used();
  std::unique_lock<std::mutex> lock(mutex_);
  const auto has_room = [this] {
    return submitted_.load(std::memory_order_relaxed) -
        completed_.load(std::memory_order_acquire) <
        kSlots;
  };
  if (!has_room() && !progressed_.wait_until(lock, deadline(), has_room)) {
    deadline_exceeded("room in its full queue");
  }
  if (ring_.empty()) {
    ring_.resize(kSlots);
  }
  const auto ticket = submitted_.load(std::memory_order_relaxed);
  ring_[ticket % kSlots] = std::move(task);
  submitted_.store(ticket + 1, std::memory_order_release);
  if (!has_worker_) {
    has_worker_ = true;
    std::thread([this] { work(); }).detach();
  }
  lock.unlock();
  work_ready_.notify_one();
}

void Queue::work() {
  for (uint64_t next = 0;; ++next) {
    const auto is_ready = [&] {
      return submitted_.load(std::memory_order_acquire) > next;
    };
    for (int spin = 0; spin < kSpins && !is_ready(); ++spin) {
      std::this_thread::yield();
    }
    Task task;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      work_ready_.wait(lock, is_ready);
      task = std::move(ring_[next % kSlots]);
    }
    run(task);
    // What the closure holds is gone before anyone is told that it ran.
    task.reset();
    {
      std::lock_guard<std::mutex> lock(mutex_);
      completed_.store(next + 1, std::memory_order_release);
    }
    progressed_.notify_all();
  }
}

void Queue::run(Task& task) {
  running_op_.store(task.op, std::memory_order_relaxed);
  std::string what;
  try {
    task();
    return;
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
    what = "unknown exception";
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (parked_ == nullptr) {
    parked_ = std::make_unique<AsyncError>(
        op_name(task.op), task.python_frame, what);
    has_parked_.store(true, std::memory_order_release);
  }
}

void Queue::wait_idle() {
  wait_for(submitted());
}

void Queue::wait_for(uint64_t ticket) {
  wait_passed(ticket);
  if (has_parked_.load(std::memory_order_acquire)) {
    rethrow_parked();
  }
}

void Queue::wait_passed(uint64_t ticket) {
  if (completed() >= ticket) {
    return;
  }
  check_fork();
  std::unique_lock<std::mutex> lock(mutex_);
  const bool passed = progressed_.wait_until(
      lock, deadline(), [&] { return completed() >= ticket; });
  if (!passed) {
    deadline_exceeded("work on it");
  }
}

void Queue::rethrow_parked() {
  std::unique_ptr<AsyncError> error;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    error.swap(parked_);
    has_parked_.store(false, std::memory_order_release);
  }
  if (error != nullptr) {
    throw AsyncError(*error);
  }
}

void Queue::deadline_exceeded(const char* waited_for) {
  throw DeadlineExceeded(
      "Waited " + std::to_string(config().wait_deadline_seconds) + " s for " +
      waited_for + " (stream " + std::to_string(id_) + " of neuron:" +
      std::to_string(device_) + ", " +
      std::to_string(submitted() - completed()) + " tasks pending, running " +
      op_name(running_op_.load()) +
      "). Raise NEURON_RT_EXEC_TIMEOUT if the work is really that long.");
}

} // namespace neuron::runtime

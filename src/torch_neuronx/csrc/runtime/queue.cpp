#include "runtime/queue.h"

#include <chrono>
#include <cstdio>
#include <thread>

#include "runtime/op.h"

namespace neuron::runtime {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<void* (*)()> before_wait{nullptr};
std::atomic<void (*)(void*)> after_wait{nullptr};

// Calls the wait hooks around a wait. Made before any lock is taken and gone
// after the last one is let go, so that hooks may take locks themselves.
class Waiting {
 public:
  Waiting() {
    if (auto* before = before_wait.load()) {
      token_ = before();
    }
  }
  ~Waiting() {
    if (auto* after = after_wait.load()) {
      after(token_);
    }
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  void* token_ = nullptr;
};

Clock::time_point deadline() {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(
             std::chrono::duration<double>(config().wait_deadline_seconds));
}

// Looks for work for a few microseconds: cheaper than sleeping and waking.
template <class F>
bool spin_until(F&& is_ready) {
  const auto end = Clock::now() + std::chrono::microseconds(5);
  do {
    for (int i = 0; i < 16; ++i) {
      if (is_ready()) {
        return true;
      }
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  } while (Clock::now() < end);
  return false;
}

}  // namespace

void set_wait_hooks(void* (*before)(), void (*after)(void*)) {
  before_wait = before;
  after_wait = after;
}

Queue::Queue(uint32_t id, int device, int priority)
    : id_(id),
      device_(device),
      priority_(priority),
      runs_inline_(id == 0 || config().launch_blocking) {}

uint64_t Queue::submit(Task task) {
  check_fork();
  mark_used();
  while (true) {
    if (const auto ticket = try_submit(task)) {
      return ticket;
    }
    wait_until(
        [this] { return has_room(); }, "room in the full queue of launches");
  }
}

bool Queue::has_room() const noexcept {
  return submitted_.load() - completed_.load() < kSlots;
}

uint64_t Queue::try_submit(Task& task) {
  bool wake = false;
  uint64_t ticket = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!has_room()) {
      return 0;
    }
    if (!has_worker_) {
      ring_.resize(kSlots);
      std::thread([this] { work(); }).detach();
      has_worker_ = true;
    }
    ticket = submitted_.load(std::memory_order_relaxed);
    ring_[ticket % kSlots] = std::move(task);
    submitted_.store(++ticket, std::memory_order_release);
    wake = is_asleep_;
  }
  if (wake) {
    work_ready_.notify_one();
  }
  return ticket;
}

void Queue::work() {
  for (uint64_t next = 0;; ++next) {
    const auto is_ready = [&] {
      return submitted_.load(std::memory_order_acquire) > next;
    };
    if (!spin_until(is_ready)) {
      std::unique_lock<std::mutex> lock(mutex_);
      is_asleep_ = true;
      work_ready_.wait(lock, is_ready);
      is_asleep_ = false;
    }
    // No lock: the slot is the worker's until the task counts as completed.
    Task task = std::move(ring_[next % kSlots]);
    run(task);
    // What the closure holds is gone before anyone is told that it ran.
    task.reset();
    // Sequentially consistent, like the waiters' steps: either they see the
    // task completed or this sees them waiting.
    completed_.store(next + 1);
    if (num_waiting_.load() > 0) {
      {
        std::lock_guard<std::mutex> lock(mutex_);
      }
      progressed_.notify_all();
    }
  }
}

void Queue::run(Task& task) {
  running_op_.store(task.op, std::memory_order_relaxed);
  std::string what;
  try {
    task();
    return;
  } catch (const std::exception& error) {
    what = describe(error);
  } catch (...) {
    what = "an exception that is no std::exception.";
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (parked_ == nullptr) {
    parked_ =
        std::make_unique<AsyncError>(op_name(task.op), task.python_frame, what);
    has_parked_.store(true, std::memory_order_release);
  }
}

void Queue::wait_idle() { wait_for(submitted()); }

void Queue::wait_for(uint64_t ticket) {
  check_fork();
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
  wait_until(
      [&] { return completed_.load() >= ticket; }, "the work on a stream");
}

template <class F>
void Queue::wait_until(F&& is_true, const char* what) {
  const Waiting waiting;
  if (spin_until(is_true)) {
    return;
  }
  std::unique_lock<std::mutex> lock(mutex_);
  ++num_waiting_;
  const bool in_time = progressed_.wait_until(lock, deadline(), is_true);
  --num_waiting_;
  if (!in_time) {
    throw DeadlineExceeded(deadline_text(what));
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

std::string Queue::deadline_text(const char* what) const {
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%g", config().wait_deadline_seconds);
  return std::string("Waited ") + seconds + " s for " + what + ": stream " +
         std::to_string(id_) + " of neuron:" + std::to_string(device_) +
         " still runs " + op_name(running_op_.load()) + ", the first of " +
         std::to_string(submitted() - completed()) +
         " pending. If the work is really that long, set "
         "TORCH_NEURONX_WAIT_DEADLINE to more seconds.";
}

}  // namespace neuron::runtime

// The one way work gets onto a queue.
#pragma once

#include "runtime/queue.h"
#include "runtime/recorder.h"

namespace neuron::runtime {

namespace detail {

// Files the record when it goes, also when the work throws.
struct Recording {
  recorder::Record record;
  uint64_t recording;
  ~Recording() {
    record.end_ns = recorder::now_ns();
    recorder::add(record, recording);
  }
};

template <class F>
auto recorded(uint32_t op, const Queue& queue, F&& work) {
  recorder::Record record{};
  record.op = op;
  record.queue = queue.id();
  record.device = queue.device();
  record.thread = recorder::this_thread();
  record.frame = recorder::current_frame();
  record.submit_ns = recorder::now_ns();
  return [record,
          recording = recorder::current_recording(),
          work = std::forward<F>(work)]() mutable {
    record.start_ns = recorder::now_ns();
    [[maybe_unused]] const Recording filed{record, recording};
    work();
  };
}

template <class F>
void run_or_submit(uint32_t op, Queue& queue, F&& work) {
  if (queue.may_run_inline()) {
    check_fork();
    work();
    return;
  }
  Task task(std::forward<F>(work), op);
  task.python_frame = recorder::python_frame();
  queue.submit(std::move(task));
}

}  // namespace detail

// Runs `work` after everything given to `queue` before: at once in this
// thread if nothing is pending, else on the queue's worker. `work` holds raw
// pointers; memory that the caller frees meanwhile is reused in queue order,
// so it stays valid. Exceptions of inline work pass through; others surface
// at the next wait.
template <class F>
void launch(uint32_t op, Queue& queue, F&& work) {
  if (is_dry()) [[unlikely]] {
    check_fork();
    return;  // there is no memory that `work` could read
  }
  if (recorder::enabled()) [[unlikely]] {
    detail::run_or_submit(
        op, queue, detail::recorded(op, queue, std::forward<F>(work)));
    return;
  }
  detail::run_or_submit(op, queue, std::forward<F>(work));
}

}  // namespace neuron::runtime

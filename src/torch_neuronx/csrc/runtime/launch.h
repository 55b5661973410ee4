// The one way work gets onto a queue.
#pragma once

#include "runtime/queue.h"
#include "runtime/recorder.h"

namespace neuron::runtime {

namespace detail {

template <class F>
auto recorded(uint32_t op, const Queue& queue, F&& work) {
  return [op,
          id = queue.id(),
          device = queue.device(),
          submit = recorder::now_ns(),
          thread = recorder::this_thread(),
          frame = recorder::current_frame(),
          work = std::forward<F>(work)]() mutable {
    const auto start = recorder::now_ns();
    work();
    recorder::add(
        {op, id, device, submit, start, recorder::now_ns(), thread, frame});
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

} // namespace detail

// Runs `work` after everything given to `queue` before: at once in this
// thread if nothing is pending, else on the queue's worker. `work` holds raw
// pointers; memory that the caller frees meanwhile is reused in queue order,
// so it stays valid. Exceptions of inline work pass through; others surface
// at the next wait.
template <class F>
void launch(uint32_t op, Queue& queue, F&& work) {
  if (recorder::enabled()) [[unlikely]] {
    detail::run_or_submit(
        op, queue, detail::recorded(op, queue, std::forward<F>(work)));
    return;
  }
  detail::run_or_submit(op, queue, std::forward<F>(work));
}

} // namespace neuron::runtime

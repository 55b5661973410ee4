#include "runtime/event.h"

#include "runtime/clock.h"
#include "runtime/op.h"
#include "runtime/recorder.h"

namespace neuron::runtime {

std::shared_ptr<Event::Mark> Event::mark() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return mark_;
}

void Event::record(Queue& queue) {
  check_fork();
  auto fresh = std::make_shared<Mark>();
  fresh->queue = &queue;
  if (clock::running()) {
    fresh->modelled_ns = clock::now(queue.device(), queue.id());
  }
  if (queue.idle()) {
    fresh->ticket = queue.submitted();
    fresh->reached_ns = recorder::now_ns();
  } else {
    static const auto op = op_id("neuron::record_event");
    fresh->ticket = queue.submit(
        Task([fresh] { fresh->reached_ns = recorder::now_ns(); }, op));
  }
  std::lock_guard<std::mutex> lock(mutex_);
  mark_ = std::move(fresh);
}

void Event::block(Queue& queue) const {
  const auto seen = mark();
  if (seen == nullptr || seen->queue == &queue) {
    return;
  }
  clock::wait(queue.device(), queue.id(), seen->modelled_ns);
  if (seen->queue->completed() >= seen->ticket) {
    return;
  }
  if (queue.may_run_inline()) {
    seen->queue->wait_passed(seen->ticket);
    return;
  }
  // Tickets are older than this task, so waits between workers cannot form a
  // cycle.
  static const auto op = op_id("neuron::wait_event");
  queue.submit(Task([seen] { seen->queue->wait_passed(seen->ticket); }, op));
}

bool Event::query() const {
  check_fork();
  const auto seen = mark();
  return seen == nullptr || seen->queue->completed() >= seen->ticket;
}

void Event::synchronize() const {
  if (const auto seen = mark()) {
    seen->queue->wait_for(seen->ticket);
    clock::host_wait(seen->modelled_ns);
  }
}

int64_t Event::modelled_ns() const {
  const auto seen = mark();
  return seen == nullptr ? -1 : seen->modelled_ns;
}

double Event::elapsed_ms(const Event& end) const {
  if (!timing_ || !end.timing_) {
    throw std::runtime_error(
        std::string("elapsed_time needs events that take time; ") +
        (!timing_ ? "the first" : "the second") +
        " does not. Create both with enable_timing=True.");
  }
  const auto first = mark();
  const auto last = end.mark();
  if (first == nullptr || last == nullptr) {
    throw std::runtime_error(
        std::string("elapsed_time needs two recorded events; ") +
        (first == nullptr ? "the first" : "the second") +
        " was never recorded. Call event.record() first.");
  }
  if (first->reached_ns == 0 || last->reached_ns == 0) {
    throw std::runtime_error(
        std::string("elapsed_time needs two finished events; ") +
        (first->reached_ns == 0 ? "the first" : "the second") +
        " has work before it that still runs. Call event.synchronize() "
        "first.");
  }
  return static_cast<double>(last->reached_ns - first->reached_ns) * 1e-6;
}

}  // namespace neuron::runtime

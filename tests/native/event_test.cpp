// Events: what they mark, what waits for them, what they measure.
#include "runtime/event.h"

#include <thread>

#include "check.h"
#include "machine.h"

namespace neuron::runtime {
namespace {

using test::Gate;
using test::hold;
using test::machine;
using test::spin_for;

TEST(event_that_was_never_recorded_is_done_and_blocks_nobody) {
  configure(machine());
  Event event(/*timing=*/false);
  CHECK(event.query());
  event.synchronize();
  event.block(default_queue(0));
  auto& side = queue_from_pool(0, 0);
  event.block(side);
  CHECK(side.idle());
}

TEST(event_on_an_idle_queue_is_reached_at_once) {
  configure(machine());
  auto& side = queue_from_pool(0, 0);
  Event event(/*timing=*/false);
  event.record(side);
  CHECK(event.query());
  CHECK_EQUAL(side.submitted(), uint64_t{0});
}

TEST(event_is_reached_when_the_work_before_it_ran) {
  configure(machine());
  auto& side = queue_from_pool(0, 0);
  Gate before;
  Gate after;
  hold(side, before);
  Event event(/*timing=*/false);
  event.record(side);
  side.submit(Task(after.pass()));
  CHECK(!event.query());
  before.open();
  event.synchronize();
  CHECK(event.query());
  CHECK(!side.idle());
  after.open();
  side.wait_idle();
}

TEST(event_orders_work_across_queues) {
  configure(machine(2));
  auto& producer = queue_from_pool(0, 0);
  auto& consumer = queue_from_pool(1, 0);
  Gate gate;
  hold(producer, gate);
  int value = 0;
  int seen = -1;
  producer.submit(Task([&] { value = 42; }));
  Event event(/*timing=*/false);
  event.record(producer);
  event.block(consumer);
  consumer.submit(Task([&] { seen = value; }));
  CHECK(!consumer.idle());
  gate.open();
  consumer.wait_idle();
  CHECK_EQUAL(seen, 42);
}

TEST(event_makes_inline_work_wait_in_the_host) {
  configure(machine());
  auto& side = queue_from_pool(0, 0);
  int value = 0;
  side.submit(Task([&] {
    spin_for(std::chrono::milliseconds(2));
    value = 42;
  }));
  Event event(/*timing=*/false);
  event.record(side);
  event.block(default_queue(0));
  int seen = -1;
  launch(op_id("test::read"), default_queue(0), [&] { seen = value; });
  CHECK_EQUAL(seen, 42);
}

TEST(event_recorded_again_does_not_move_earlier_waits) {
  configure(machine());
  auto& producer = queue_from_pool(0, 0);
  auto& consumer = queue_from_pool(0, 0);
  Gate first;
  Gate second;
  hold(producer, first);
  Event event(/*timing=*/false);
  event.record(producer);
  event.block(consumer);
  producer.submit(Task(second.pass()));
  event.record(producer);
  first.open();
  // Would hang if the wait had moved behind the second gate.
  consumer.wait_idle();
  CHECK(!event.query());
  second.open();
  event.synchronize();
}

TEST(event_recorded_again_blocks_later_waits_at_the_new_mark) {
  configure(machine());
  auto& producer = queue_from_pool(0, 0);
  auto& consumer = queue_from_pool(0, 0);
  Event event(/*timing=*/false);
  event.record(producer);
  CHECK(event.query());
  Gate gate;
  hold(producer, gate);
  event.record(producer);
  event.block(consumer);
  std::atomic<bool> ran{false};
  consumer.submit(Task([&] { ran = true; }));
  CHECK(!ran);
  CHECK(!consumer.idle());
  gate.open();
  consumer.wait_idle();
  CHECK(ran);
}

TEST(event_may_die_before_its_waits_end) {
  configure(machine());
  auto& producer = queue_from_pool(0, 0);
  auto& consumer = queue_from_pool(0, 0);
  Gate gate;
  hold(producer, gate);
  {
    Event event(/*timing=*/true);
    event.record(producer);
    event.block(consumer);
  }
  gate.open();
  consumer.wait_idle();
}

TEST(events_between_two_queues_in_both_directions_do_not_deadlock) {
  configure(machine());
  auto& a = queue_from_pool(0, 0);
  auto& b = queue_from_pool(0, 0);
  std::vector<int> ran;
  for (int i = 0; i < 300; ++i) {
    a.submit(Task([&ran, i] { ran.push_back(2 * i); }));
    Event a_done(/*timing=*/false);
    a_done.record(a);
    a_done.block(b);
    b.submit(Task([&ran, i] { ran.push_back(2 * i + 1); }));
    Event b_done(/*timing=*/false);
    b_done.record(b);
    b_done.block(a);
  }
  synchronize_device(0);
  CHECK_EQUAL(ran.size(), size_t{600});
  for (int i = 0; i < 600; ++i) {
    CHECK_EQUAL(ran[static_cast<size_t>(i)], i);
  }
}

TEST(event_wait_behind_a_failed_task_still_passes_and_the_error_stays) {
  configure(machine());
  auto& producer = queue_from_pool(0, 0);
  auto& consumer = queue_from_pool(0, 0);
  Gate gate;
  hold(producer, gate);
  launch(op_id("test::failing"), producer, [] {
    throw std::runtime_error("broken");
  });
  Event event(/*timing=*/false);
  event.record(producer);
  event.block(consumer);
  gate.open();
  consumer.wait_idle();
  CHECK_CONTAINS(MESSAGE_OF(AsyncError, event.synchronize()), "broken");
  producer.wait_idle();
}

TEST(event_wait_in_a_worker_has_a_deadline) {
  auto config = machine();
  config.wait_deadline_seconds = 0.05;
  configure(config);
  auto& producer = queue_from_pool(0, 0);
  auto& consumer = queue_from_pool(0, 0);
  Gate gate;
  hold(producer, gate);
  Event event(/*timing=*/false);
  event.record(producer);
  event.block(consumer);
  while (!consumer.idle()) {
    std::this_thread::yield();
  }
  CHECK_CONTAINS(MESSAGE_OF(AsyncError, consumer.wait_idle()), "test::gate");
  gate.open();
  producer.wait_idle();
}

TEST(event_measures_the_time_between_marks) {
  configure(machine());
  for (auto* queue : {&default_queue(0), &queue_from_pool(0, 0)}) {
    Event start(/*timing=*/true);
    Event end(/*timing=*/true);
    start.record(*queue);
    launch(op_id("test::work"), *queue, [] {
      spin_for(std::chrono::milliseconds(5));
    });
    end.record(*queue);
    end.synchronize();
    const double taken = start.elapsed_ms(end);
    CHECK(taken >= 5.0 && taken < 5000.0);
    CHECK_EQUAL(end.elapsed_ms(start), -taken);
  }
}

TEST(event_says_why_it_has_no_elapsed_time) {
  configure(machine());
  auto& side = queue_from_pool(0, 0);
  Event timed(/*timing=*/true);
  Event untimed(/*timing=*/false);
  Event late(/*timing=*/true);
  untimed.record(side);
  CHECK_CONTAINS(
      MESSAGE_OF(std::runtime_error, timed.elapsed_ms(untimed)),
      "enable_timing=True");
  CHECK_CONTAINS(
      MESSAGE_OF(std::runtime_error, timed.elapsed_ms(late)), "never recorded");
  timed.record(side);
  Gate gate;
  hold(side, gate);
  late.record(side);
  CHECK_CONTAINS(
      MESSAGE_OF(std::runtime_error, timed.elapsed_ms(late)),
      "event.synchronize()");
  gate.open();
  late.synchronize();
  CHECK(timed.elapsed_ms(late) >= 0);
}

}  // namespace
}  // namespace neuron::runtime

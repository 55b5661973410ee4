// Op names and the launch recorder.
#include "runtime/recorder.h"

#include <thread>

#include "check.h"
#include "machine.h"

namespace neuron::runtime {
namespace {

using test::Gate;
using test::hold;
using test::machine;
using test::spin_for;

TEST(op_ids_are_interned_and_names_stay) {
  const auto add = op_id("aten::add");
  const auto* name = &op_name(add);
  for (int i = 0; i < 2000; ++i) {
    op_id("test::op" + std::to_string(i));
  }
  CHECK_EQUAL(op_id("aten::add"), add);
  CHECK(op_id("aten::mul") != add);
  CHECK_EQUAL(op_name(add), "aten::add");
  CHECK(&op_name(add) == name);
  ++executed(add);
  CHECK_EQUAL(executed(add).load(), uint64_t{1});
  CHECK_EQUAL(executed(op_id("aten::mul")).load(), uint64_t{0});
}

TEST(recorder_records_inline_and_queued_work) {
  configure(machine(2));
  const auto inline_op = op_id("test::inline");
  const auto queued_op = op_id("test::queued");
  auto& side = queue_from_pool(1, 0);
  CHECK(!recorder::enabled());
  launch(inline_op, default_queue(0), [] {});
  recorder::start(/*with_frames=*/false, 100);
  CHECK(recorder::enabled());
  Gate gate;
  hold(side, gate);
  launch(queued_op, side, [] { spin_for(std::chrono::milliseconds(1)); });
  launch(inline_op, default_queue(0), [] {
    spin_for(std::chrono::milliseconds(1));
  });
  gate.open();
  side.wait_idle();
  const auto stopped = recorder::stop();
  CHECK(!recorder::enabled());
  launch(inline_op, default_queue(0), [] {});
  CHECK_EQUAL(stopped.records.size(), size_t{2});
  CHECK_EQUAL(stopped.dropped, uint64_t{0});
  const auto& first = stopped.records[0];
  const auto& second = stopped.records[1];
  CHECK_EQUAL(op_name(first.op), "test::inline");
  CHECK_EQUAL(first.device, 0);
  CHECK_EQUAL(first.queue, 0U);
  CHECK_EQUAL(op_name(second.op), "test::queued");
  CHECK_EQUAL(second.device, 1);
  CHECK_EQUAL(second.queue, side.id());
  for (const auto& record : stopped.records) {
    CHECK(record.submit_ns <= record.start_ns);
    CHECK(record.end_ns - record.start_ns >= 1000000);
    CHECK_EQUAL(record.thread, recorder::this_thread());
    CHECK_EQUAL(record.frame, -1);
  }
}

TEST(recorder_counts_what_does_not_fit) {
  configure(machine());
  recorder::start(/*with_frames=*/false, 10);
  for (int i = 0; i < 25; ++i) {
    launch(op_id("test::work"), default_queue(0), [] {});
  }
  const auto stopped = recorder::stop();
  CHECK_EQUAL(stopped.records.size(), size_t{10});
  CHECK_EQUAL(stopped.dropped, uint64_t{15});
  recorder::start(/*with_frames=*/false, 10);
  CHECK_EQUAL(recorder::stop().dropped, uint64_t{0});
}

int line = 0;
std::string line_of_caller() {
  return "train.py:" + std::to_string(line) + " in step";
}

TEST(recorder_keeps_each_python_line_once) {
  configure(machine());
  recorder::set_frame_hook(&line_of_caller);
  recorder::start(/*with_frames=*/true, 100);
  for (int i = 0; i < 6; ++i) {
    line = 10 + i % 2;
    launch(op_id("test::work"), default_queue(0), [] {});
  }
  const auto stopped = recorder::stop();
  CHECK_EQUAL(stopped.frames.size(), size_t{2});
  CHECK_EQUAL(stopped.records.size(), size_t{6});
  for (size_t i = 0; i < 6; ++i) {
    CHECK_EQUAL(
        stopped.frames.at(static_cast<size_t>(stopped.records[i].frame)),
        "train.py:" + std::to_string(10 + i % 2) + " in step");
  }
}

TEST(recorder_leaves_out_work_that_ends_after_the_stop) {
  configure(machine());
  auto& side = queue_from_pool(0, 0);
  Gate gate;
  recorder::start(/*with_frames=*/false, 100);
  launch(op_id("test::held"), side, gate.pass());
  gate.wait_for_arrival();
  CHECK_EQUAL(recorder::stop().records.size(), size_t{0});
  gate.open();
  side.wait_idle();
  // A later recording must not get it either.
  recorder::start(/*with_frames=*/false, 100);
  CHECK_EQUAL(recorder::stop().records.size(), size_t{0});
}

TEST(recorder_leaves_work_of_an_earlier_recording_out_of_the_next) {
  configure(machine());
  auto& side = queue_from_pool(0, 0);
  Gate gate;
  recorder::start(/*with_frames=*/false, 100);
  launch(op_id("test::held"), side, gate.pass());
  recorder::stop();
  recorder::start(/*with_frames=*/false, 100);
  gate.open();
  side.wait_idle();
  CHECK_EQUAL(recorder::stop().records.size(), size_t{0});
}

TEST(recorder_records_work_that_fails) {
  configure(machine());
  recorder::start(/*with_frames=*/false, 100);
  (void)MESSAGE_OF(
      std::runtime_error, launch(op_id("test::failing"), default_queue(0), [] {
        throw std::runtime_error("broken");
      }));
  CHECK_EQUAL(recorder::stop().records.size(), size_t{1});
}

TEST(recorder_takes_records_from_many_threads) {
  configure(machine());
  recorder::start(/*with_frames=*/false, 100000);
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; ++id) {
    threads.emplace_back([] {
      auto& queue = new_queue(0, 0);
      for (int i = 0; i < 1000; ++i) {
        launch(op_id("test::work"), queue, [] {});
      }
      queue.wait_idle();
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  const auto stopped = recorder::stop();
  CHECK_EQUAL(stopped.records.size(), size_t{4000});
}

}  // namespace
}  // namespace neuron::runtime

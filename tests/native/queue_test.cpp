// Queues: order, errors, deadlines.
#include "runtime/queue.h"

#include <algorithm>
#include <array>
#include <set>
#include <thread>

#include "check.h"
#include "machine.h"

namespace neuron::runtime {
namespace {

using test::Gate;
using test::hold;
using test::machine;

TEST(queue_runs_more_tasks_than_its_ring_holds_in_order) {
  configure(machine());
  auto& side = queue_from_pool(0, 0);
  constexpr int kTasks = 20000;
  std::vector<int> ran;
  for (int i = 0; i < kTasks; ++i) {
    side.submit(Task([&ran, i] { ran.push_back(i); }));
  }
  side.wait_idle();
  CHECK_EQUAL(ran.size(), size_t{kTasks});
  for (int i = 0; i < kTasks; ++i) {
    CHECK_EQUAL(ran[static_cast<size_t>(i)], i);
  }
  CHECK_EQUAL(side.submitted(), uint64_t{kTasks});
  CHECK_EQUAL(side.completed(), uint64_t{kTasks});
}

TEST(queue_is_not_idle_while_its_last_task_runs) {
  configure(machine());
  auto& side = queue_from_pool(0, 0);
  CHECK(side.idle());
  Gate gate;
  hold(side, gate);
  CHECK(!side.idle());
  CHECK(!side.may_run_inline());
  gate.open();
  side.wait_idle();
  CHECK(side.idle());
}

TEST(default_queue_runs_work_in_the_calling_thread) {
  configure(machine());
  const auto op = op_id("test::work");
  std::thread::id seen;
  launch(op, default_queue(0), [&] { seen = std::this_thread::get_id(); });
  CHECK(seen == std::this_thread::get_id());
  auto& side = queue_from_pool(0, 0);
  launch(op, side, [&] { seen = std::this_thread::get_id(); });
  side.wait_idle();
  CHECK(seen != std::this_thread::get_id());
}

TEST(default_queue_keeps_order_behind_queued_work) {
  configure(machine());
  const auto op = op_id("test::work");
  auto& queue = default_queue(0);
  Gate gate;
  hold(queue, gate);
  std::vector<int> ran;
  launch(op, queue, [&] { ran.push_back(1); });
  launch(op, queue, [&] { ran.push_back(2); });
  gate.open();
  queue.wait_idle();
  launch(op, queue, [&] { ran.push_back(3); });
  CHECK(ran == std::vector<int>({1, 2, 3}));
}

TEST(side_queue_runs_inline_when_launches_block) {
  auto config = machine();
  config.launch_blocking = true;
  configure(config);
  bool ran = false;
  launch(op_id("test::work"), queue_from_pool(0, 0), [&] { ran = true; });
  CHECK(ran);
}

TEST(inline_exceptions_pass_through_unchanged) {
  configure(machine());
  const auto op = op_id("test::failing");
  auto& queue = default_queue(0);
  CHECK_EQUAL(
      MESSAGE_OF(
          std::invalid_argument,
          launch(op, queue, [] { throw std::invalid_argument("mine"); })),
      "mine");
  queue.wait_idle();
}

std::string fixed_frame() { return "model.py:12 in forward"; }

TEST(queue_parks_the_first_error_and_throws_it_once) {
  configure(machine());
  recorder::set_frame_hook(&fixed_frame);
  const auto op = op_id("test::failing");
  auto& side = queue_from_pool(0, 0);
  bool later_ran = false;
  launch(op, side, [] { throw std::runtime_error("singular matrix"); });
  launch(op_id("test::other"), side, [] { throw std::runtime_error("no"); });
  launch(op, side, [&] { later_ran = true; });
  try {
    side.wait_idle();
    CHECK(false);
  } catch (const AsyncError& error) {
    CHECK_EQUAL(error.op, "test::failing");
    CHECK_EQUAL(error.python_frame, "model.py:12 in forward");
    CHECK_CONTAINS(error.what(), "singular matrix");
    CHECK_CONTAINS(error.what(), "model.py:12 in forward");
    CHECK_CONTAINS(error.what(), "NEURON_LAUNCH_BLOCKING=1");
  }
  CHECK(later_ran);
  side.wait_idle();
  launch(op_id("test::other"), side, [] { throw std::runtime_error("next"); });
  CHECK_CONTAINS(MESSAGE_OF(AsyncError, side.wait_idle()), "next");
  bool usable = false;
  launch(op, side, [&] { usable = true; });
  side.wait_idle();
  CHECK(usable);
}

TEST(queue_reports_an_exception_that_is_no_std_exception) {
  configure(machine());
  auto& side = queue_from_pool(0, 0);
  launch(op_id("test::odd"), side, [] { throw 7; });
  CHECK_CONTAINS(MESSAGE_OF(AsyncError, side.wait_idle()), "test::odd");
}

TEST(queue_names_the_running_op_when_a_wait_exceeds_its_deadline) {
  auto config = machine();
  config.wait_deadline_seconds = 0.05;
  configure(config);
  auto& side = queue_from_pool(0, 0);
  Gate gate;
  hold(side, gate);
  const auto text = MESSAGE_OF(DeadlineExceeded, side.wait_idle());
  CHECK_CONTAINS(text, "test::gate");
  CHECK_CONTAINS(text, "0.05");
  CHECK_CONTAINS(text, "TORCH_NEURONX_WAIT_DEADLINE");
  gate.open();
  side.wait_idle();
}

TEST(queue_with_a_full_ring_blocks_the_submitter_until_the_deadline) {
  auto config = machine();
  config.wait_deadline_seconds = 0.05;
  configure(config);
  auto& side = queue_from_pool(0, 0);
  Gate gate;
  hold(side, gate);
  int num_ran = 0;
  uint64_t num_submitted = 0;
  const auto text = MESSAGE_OF(DeadlineExceeded, {
    for (;; ++num_submitted) {
      side.submit(Task([&] { ++num_ran; }));
    }
  });
  CHECK_CONTAINS(text, "test::gate");
  CHECK(num_submitted >= 1000 && num_submitted < 100000);
  // What was refused is not run later; what was taken is.
  std::thread opener([&] { gate.open(); });
  opener.join();
  while (!side.idle()) {
    std::this_thread::yield();
  }
  CHECK_EQUAL(static_cast<uint64_t>(num_ran), num_submitted);
  side.submit(Task([&] { ++num_ran; }));
  side.wait_idle();
  CHECK_EQUAL(static_cast<uint64_t>(num_ran), num_submitted + 1);
}

TEST(queue_wakes_a_submitter_when_its_full_ring_drains) {
  configure(machine());
  auto& side = queue_from_pool(0, 0);
  Gate gate;
  hold(side, gate);
  std::atomic<int> num_ran{0};
  constexpr int kTasks = 10000;
  std::thread submitter([&] {
    for (int i = 0; i < kTasks; ++i) {
      side.submit(Task([&] { ++num_ran; }));
    }
  });
  // The submitter gets stuck somewhere below the number of its tasks.
  while (side.submitted() < 4000) {
    std::this_thread::yield();
  }
  CHECK_EQUAL(num_ran.load(), 0);
  gate.open();
  submitter.join();
  side.wait_idle();
  CHECK_EQUAL(num_ran.load(), kTasks);
}

TEST(wait_for_a_ticket_does_not_wait_for_later_tasks) {
  configure(machine());
  auto& side = queue_from_pool(0, 0);
  side.submit(Task([] {}));
  const auto ticket = side.submitted();
  Gate gate;
  side.submit(Task(gate.pass()));
  side.wait_for(ticket);
  CHECK(side.completed() >= ticket);
  CHECK(!side.idle());
  gate.open();
  side.wait_idle();
}

TEST(task_takes_large_and_move_only_work_and_drops_it_after_the_run) {
  configure(machine());
  auto& side = queue_from_pool(0, 0);
  const auto token = std::make_shared<int>(5);
  std::array<char, 500> bulk{};
  bulk[499] = 3;
  int sum = 0;
  side.submit(Task(
      [token, &sum, own = std::make_unique<int>(1)] { sum += *own + *token; }));
  side.submit(Task([token, &sum, bulk] { sum += bulk[499]; }));
  side.wait_idle();
  CHECK_EQUAL(sum, 9);
  CHECK_EQUAL(token.use_count(), 1);
  {
    const Task never_run([token] {});
    CHECK_EQUAL(token.use_count(), 2);
  }
  CHECK_EQUAL(token.use_count(), 1);
}

struct SlowToDie {
  bool* is_dead;
  ~SlowToDie() {
    test::spin_for(std::chrono::milliseconds(5));
    *is_dead = true;
  }
};

TEST(task_counts_as_completed_after_its_work_was_dropped) {
  configure(machine());
  auto& side = queue_from_pool(0, 0);
  bool is_dead = false;
  auto owner = std::make_shared<SlowToDie>(&is_dead);
  side.submit(Task([owned = std::move(owner)] {}));
  side.wait_idle();
  CHECK(is_dead);
}

TEST(queues_have_ids_priorities_and_a_current_one_per_thread) {
  configure(machine(2));
  CHECK(default_queue(0).is_default() && default_queue(0).id() == 0);
  CHECK_EQUAL(default_queue(1).device(), 1);
  CHECK(&current_queue(0) == &default_queue(0));
  std::set<uint32_t> ids;
  for (int i = 0; i < 32; ++i) {
    auto& queue = queue_from_pool(1, -1);
    CHECK_EQUAL(queue.device(), 1);
    CHECK_EQUAL(queue.priority(), -1);
    CHECK(!queue.is_default());
    CHECK(&queue_by_id(1, queue.id()) == &queue);
    ids.insert(queue.id());
  }
  CHECK_EQUAL(ids.size(), size_t{32});
  CHECK(ids.count(queue_from_pool(1, -1).id()) == 1);
  CHECK(ids.count(new_queue(1, 0).id()) == 0);
  auto& side = queue_from_pool(0, 0);
  set_current_queue(side);
  CHECK(&current_queue(0) == &side);
  CHECK(&current_queue(1) == &default_queue(1));
  Queue* elsewhere = nullptr;
  std::thread([&] { elsewhere = &current_queue(0); }).join();
  CHECK(elsewhere == &default_queue(0));
  CHECK_CONTAINS(
      MESSAGE_OF(std::runtime_error, queue_by_id(1, 12345)), "no stream 12345");
}

TEST(synchronize_device_drains_all_queues_before_it_throws) {
  configure(machine());
  auto& failing = queue_from_pool(0, 0);
  auto& slow = queue_from_pool(0, 0);
  std::atomic<bool> slow_ran{false};
  Gate gate;
  hold(slow, gate);
  slow.submit(Task([&] { slow_ran = true; }));
  launch(op_id("test::failing"), failing, [] {
    throw std::runtime_error("broken");
  });
  std::thread opener([&] { gate.open(); });
  CHECK_CONTAINS(MESSAGE_OF(AsyncError, synchronize_device(0)), "broken");
  opener.join();
  CHECK(slow_ran);
  synchronize_device(0);
}

std::mutex interpreter_lock;

TEST(waits_let_go_of_what_the_hooks_hold) {
  configure(machine());
  set_wait_hooks(
      []() -> void* {
        interpreter_lock.unlock();
        return &interpreter_lock;
      },
      [](void* lock) { static_cast<std::mutex*>(lock)->lock(); });
  auto& side = queue_from_pool(0, 0);
  const std::lock_guard<std::mutex> held(interpreter_lock);
  bool ran = false;
  Gate gate;
  hold(side, gate);
  side.submit(Task([&] {
    const std::lock_guard<std::mutex> inner(interpreter_lock);
    ran = true;
  }));
  gate.open();
  side.wait_idle();
  CHECK(ran);
}

TEST(queue_takes_tasks_from_many_threads) {
  configure(machine());
  auto& side = queue_from_pool(0, 0);
  constexpr int kThreads = 4;
  constexpr int kTasks = 3000;
  std::array<std::vector<int>, kThreads> ran;
  std::vector<std::thread> threads;
  for (size_t id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      for (int i = 0; i < kTasks; ++i) {
        side.submit(Task([&ran, id, i] { ran[id].push_back(i); }));
        if (i % 500 == 0) {
          side.wait_idle();
        }
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  side.wait_idle();
  for (const auto& each : ran) {
    CHECK_EQUAL(each.size(), size_t{kTasks});
    CHECK(std::is_sorted(each.begin(), each.end()));
  }
}

TEST(queue_times_a_launch) {
  configure(machine());
  const auto op = op_id("test::work");
  for (auto* queue : {&default_queue(0), &queue_from_pool(0, 0)}) {
    constexpr int kRounds = 100000;
    int sum = 0;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kRounds; ++i) {
      launch(op, *queue, [&sum] { ++sum; });
    }
    queue->wait_idle();
    const std::chrono::duration<double, std::nano> taken =
        std::chrono::steady_clock::now() - start;
    CHECK_EQUAL(sum, kRounds);
    std::printf(
        "launch on the %s queue: %.1f ns\n",
        queue->is_default() ? "default" : "side",
        taken.count() / kRounds);
  }
}

}  // namespace
}  // namespace neuron::runtime

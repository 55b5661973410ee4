// Devices: configuration, the current device, fork.
#include "runtime/device.h"

#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "check.h"
#include "machine.h"
#include "runtime/event.h"
#include "runtime/memory.h"

namespace neuron::runtime {
namespace {

using test::machine;

TEST(device_count_is_zero_before_configuration) {
  CHECK(!configured());
  CHECK_EQUAL(device_count(), 0);
  CHECK_CONTAINS(
      MESSAGE_OF(InvalidDevice, set_current_device(0)), "no neuron device");
}

TEST(device_names_what_exists_when_the_index_does_not) {
  configure(machine(4));
  const auto text = MESSAGE_OF(InvalidDevice, set_current_device(4));
  CHECK_CONTAINS(text, "neuron:4 does not exist");
  CHECK_CONTAINS(text, "4 logical cores");
  CHECK_CONTAINS(text, "neuron:0 to neuron:3");
  CHECK_CONTAINS(text, "NEURON_RT_VISIBLE_CORES");
  (void)MESSAGE_OF(InvalidDevice, set_current_device(-1));
  (void)MESSAGE_OF(InvalidDevice, exchange_device(7));
  (void)MESSAGE_OF(InvalidDevice, device_spec(4));
  (void)MESSAGE_OF(InvalidDevice, allocate(4, 16, 0));
  (void)MESSAGE_OF(InvalidDevice, memory_stats(-1));
  (void)MESSAGE_OF(InvalidDevice, default_queue(4));
  CHECK_EQUAL(current_device(), 0);
}

TEST(device_is_current_per_thread) {
  configure(machine(2));
  CHECK_EQUAL(exchange_device(1), 0);
  int seen = -1;
  std::thread([&] { seen = current_device(); }).join();
  CHECK_EQUAL(seen, 0);
  CHECK_EQUAL(exchange_device(0), 1);
}

TEST(device_cannot_be_configured_again_once_used) {
  configure(machine(1));
  configure(machine(2));
  CHECK_EQUAL(device_count(), 2);
  CHECK(!used());
  release(allocate(0, 16, 0).block);
  CHECK(used());
  CHECK_CONTAINS(
      MESSAGE_OF(std::runtime_error, configure(machine(1))), "in use");
  CHECK_EQUAL(device_count(), 2);
}

// Runs `work` in a forked child; true if it returned true there.
template <class F>
bool in_fork(F&& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    bool good = false;
    try {
      good = work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "    in the child: %s\n", error.what());
    }
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

template <class F>
bool is_bad_fork(F&& work) {
  try {
    work();
  } catch (const BadFork& error) {
    return std::string(error.what()).find("'spawn'") != std::string::npos;
  }
  return false;
}

TEST(fork_is_bad_when_the_device_was_used) {
  configure(machine());
  const auto op = op_id("test::work");
  const auto memory = allocate(0, 64, 0);
  auto& side = queue_from_pool(0, 0);
  launch(op, side, [] {});
  side.wait_idle();
  CHECK(in_fork([&] {
    release(memory.block);  // must not hang
    return in_bad_fork() && is_bad_fork([&] { allocate(0, 64, 0); }) &&
           is_bad_fork([&] { launch(op, default_queue(0), [] {}); }) &&
           is_bad_fork([&] { launch(op, side, [] {}); });
  }));
  CHECK(in_fork([&] {  // questions that locks and streams stand behind
    empty_cache(0);    // must not hang
    return memory_stats(0).allocation[0].current == 0 &&
           memory_snapshot(0).empty() &&
           is_bad_fork([&] { side.wait_idle(); }) &&
           is_bad_fork([&] { synchronize_device(0); }) &&
           is_bad_fork([&] { queue_from_pool(0, 0); }) &&
           is_bad_fork([&] { Event(true).record(default_queue(0)); }) &&
           is_bad_fork([&] { memory_info(0); });
  }));
  CHECK(!in_bad_fork());
  release(memory.block);
  launch(op, default_queue(0), [] {});
}

TEST(fork_is_bad_while_other_threads_hold_the_locks) {
  configure(machine());
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      release(allocate(0, 64, 0).block);
    }
  });
  const auto memory = allocate(0, 64, 0);
  bool good = true;
  for (int i = 0; i < 20; ++i) {
    good = good && in_fork([&] {
             release(memory.block);
             return is_bad_fork([&] { allocate(0, 64, 0); });
           });
  }
  stop = true;
  busy.join();
  CHECK(good);
}

TEST(fork_is_good_when_the_device_was_not_used) {
  configure(machine());
  CHECK(in_fork([] {
    const auto memory = allocate(0, 64, 0);
    auto& side = queue_from_pool(0, 0);
    launch(op_id("test::work"), side, [&] {
      *static_cast<char*>(memory.data) = 1;
    });
    side.wait_idle();
    return !in_bad_fork() && *static_cast<char*>(memory.data) == 1;
  }));
}

}  // namespace
}  // namespace neuron::runtime

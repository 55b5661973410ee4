// The modelled clock: queues, the host, waits between them; launches when dry.
#include "runtime/clock.h"

#include "check.h"
#include "machine.h"
#include "runtime/event.h"

namespace neuron::runtime {
namespace {

using test::machine;

TEST(clock_of_a_queue_adds_launch_and_work) {
  configure(machine());
  clock::set_running(true);
  clock::advance(0, 0, 10, 100);
  clock::advance(0, 0, 10, 100);
  CHECK_EQUAL(clock::now(0, 0), int64_t{220});
  CHECK_EQUAL(clock::now(0), int64_t{220});
}

TEST(clock_lets_queues_overlap_but_the_host_launches_one_by_one) {
  configure(machine());
  clock::set_running(true);
  clock::advance(0, 0, 10, 1000);
  clock::advance(0, 1, 10, 1000);
  // The second launch begins when the first has ended.
  CHECK_EQUAL(clock::now(0, 1), int64_t{1020});
  CHECK_EQUAL(clock::now(0), int64_t{1020});
}

TEST(clock_of_a_device_is_not_that_of_another) {
  configure(machine(2));
  clock::set_running(true);
  clock::advance(1, 0, 0, 500);
  CHECK_EQUAL(clock::now(0), int64_t{0});
  CHECK_EQUAL(clock::now(1), int64_t{500});
}

TEST(clock_moves_a_waiting_queue_forward_and_never_back) {
  configure(machine());
  clock::set_running(true);
  clock::advance(0, 0, 0, 500);
  clock::wait(0, 1, clock::now(0, 0));
  CHECK_EQUAL(clock::now(0, 1), int64_t{500});
  clock::wait(0, 1, 100);
  clock::wait(0, 1, -1);
  CHECK_EQUAL(clock::now(0, 1), int64_t{500});
}

TEST(clock_of_the_host_holds_later_launches_back) {
  configure(machine());
  clock::set_running(true);
  clock::advance(0, 0, 10, 500);
  clock::synchronize(0);
  clock::advance(0, 1, 10, 0);
  CHECK_EQUAL(clock::now(0, 1), int64_t{520});
}

TEST(clock_that_is_stopped_ignores_waits) {
  configure(machine());
  clock::wait(0, 0, 100);
  clock::host_wait(100);
  CHECK_EQUAL(clock::now(0, 0), int64_t{0});
}

TEST(clock_goes_through_events) {
  configure(machine());
  clock::set_running(true);
  auto& first = default_queue(0);
  auto& second = queue_from_pool(0, 0);
  Event event(/*timing=*/false);
  CHECK_EQUAL(event.modelled_ns(), int64_t{-1});
  clock::advance(0, first.id(), 0, 700);
  event.record(first);
  clock::advance(0, first.id(), 0, 700);
  event.block(second);
  CHECK_EQUAL(event.modelled_ns(), int64_t{700});
  CHECK_EQUAL(clock::now(0, second.id()), int64_t{700});
}

TEST(dry_launch_runs_nothing_and_dry_memory_is_counted) {
  auto config = machine();
  config.backing = MemoryBacking::address_only;
  configure(config);
  CHECK(is_dry());
  bool ran = false;
  launch(op_id("test::op"), default_queue(0), [&ran] { ran = true; });
  CHECK(!ran);
  const auto memory = allocate(0, 512 * test::kTestMiB, 0);
  CHECK(memory.data != nullptr);
  CHECK_EQUAL(memory_stats(0).allocated_bytes[0].current, 512 * test::kTestMiB);
  release(memory.block);
  empty_cache(0);
  set_backing(MemoryBacking::committed);
  CHECK(!is_dry());
}

}  // namespace
}  // namespace neuron::runtime

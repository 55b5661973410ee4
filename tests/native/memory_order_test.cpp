// The allocator among queues and threads.
#include <time.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "check.h"
#include "machine.h"

namespace neuron::runtime {
namespace {

using test::Gate;
using test::hold;
using test::machine;

constexpr size_t kMiB = size_t{1} << 20;

TEST(record_use_keeps_a_released_block_until_the_other_queue_passed) {
  configure(machine());
  auto& side = queue_from_pool(0, 0);
  for (const size_t nbytes : {size_t{1000}, 2 * kMiB}) {
    const auto memory = allocate(0, nbytes, 0);
    const auto charged = static_cast<int64_t>(block_size(memory.block));
    Gate gate;
    hold(side, gate);
    record_use(memory.block, side.id());
    record_use(memory.block, side.id());
    release(memory.block);
    auto stats = memory_stats(0);
    CHECK_EQUAL(stats.allocated_bytes[0].current, 0);
    CHECK_EQUAL(stats.active_bytes[0].current, charged);
    const auto meanwhile = allocate(0, nbytes, 0);
    CHECK(meanwhile.data != memory.data);
    gate.open();
    side.wait_idle();
    const auto later = allocate(0, nbytes, 0);
    CHECK(later.data == memory.data);
    release(meanwhile.block);
    release(later.block);
    stats = memory_stats(0);
    CHECK_EQUAL(stats.active_bytes[0].current, 0);
    CHECK_EQUAL(stats.active[0].current, 0);
  }
}

TEST(record_use_does_not_wait_for_later_work) {
  configure(machine());
  auto& side = queue_from_pool(0, 0);
  const auto memory = allocate(0, 1000, 0);
  Gate first;
  Gate second;
  hold(side, first);
  record_use(memory.block, side.id());
  release(memory.block);
  const auto ticket = side.submitted();
  side.submit(Task(second.pass()));
  first.open();
  side.wait_for(ticket);
  CHECK(allocate(0, 1000, 0).data == memory.data);
  second.open();
  side.wait_idle();
}

TEST(record_use_refuses_a_queue_that_does_not_exist) {
  configure(machine());
  const auto memory = allocate(0, 1000, 0);
  CHECK_CONTAINS(
      MESSAGE_OF(std::runtime_error, record_use(memory.block, 9999)), "9999");
  release(memory.block);
  CHECK_EQUAL(memory_stats(0).active[0].current, 0);
}

TEST(empty_cache_keeps_memory_mapped_until_queued_work_used_it) {
  configure(machine());
  auto& side = queue_from_pool(0, 0);
  const auto memory = allocate(0, 4 * kMiB, side.id());
  Gate gate;
  hold(side, gate);
  side.submit(Task([memory] { std::memset(memory.data, 1, 4 * kMiB); }));
  release(memory.block);
  std::atomic<bool> is_empty{false};
  std::thread cleaner([&] {
    empty_cache(0);
    is_empty = true;
  });
  // Time to do it wrong.
  test::spin_for(std::chrono::milliseconds(10));
  CHECK(!is_empty);
  gate.open();
  cleaner.join();
  CHECK_EQUAL(memory_stats(0).reserved_bytes[0].current, 0);
}

TEST(memory_waits_for_queued_releases_before_it_fails) {
  configure(machine(1, static_cast<int64_t>(64 * kMiB)));
  auto& side = queue_from_pool(0, 0);
  const auto memory = allocate(0, 40 * kMiB, side.id());
  Gate gate;
  hold(side, gate);
  // The worker needs the allocator's lock while an allocation waits for it.
  side.submit(Task([memory] { release(memory.block); }));
  std::thread opener([&] { gate.open(); });
  const auto other = allocate(0, 50 * kMiB, 0);
  opener.join();
  CHECK(other.data != nullptr);
  CHECK_EQUAL(memory_stats(0).num_ooms, 0);
}

TEST(memory_is_freed_from_any_thread) {
  configure(machine(2));
  const auto memory = allocate(1, 1000, 0);
  std::thread([&] { release(memory.block); }).join();
  CHECK_EQUAL(memory_stats(1).allocated_bytes[0].current, 0);
  CHECK(allocate(1, 1000, 0).data == memory.data);
}

struct Live {
  Allocation memory;
  size_t nbytes;
  unsigned char value;

  bool is_intact() const {
    const auto* data = static_cast<const unsigned char*>(memory.data);
    return data[0] == value && data[nbytes / 2] == value &&
           data[nbytes - 1] == value;
  }
};

size_t random_size(std::mt19937& random) {
  const auto kind = random() % 100;
  if (kind < 70) {
    return 1 + random() % 20000;
  }
  return kind < 95 ? 1 + random() % (2 * kMiB) : 1 + random() % (20 * kMiB);
}

void fill(Live& live) {
  auto* data = static_cast<unsigned char*>(live.memory.data);
  data[0] = data[live.nbytes / 2] = data[live.nbytes - 1] = live.value;
}

TEST(memory_statistics_hold_under_random_work) {
  configure(machine(1, static_cast<int64_t>(160 * kMiB)));
  std::mt19937 random(1);
  std::vector<Live> all;
  int64_t requested = 0;
  int num_full = 0;
  for (int step = 0; step < 20000; ++step) {
    if (all.empty() || random() % 100 < 52) {
      Live live{{}, random_size(random), static_cast<unsigned char>(random())};
      try {
        live.memory = random() % 4 == 0
                          ? allocate_scratch(0, live.nbytes, random() % 3)
                          : allocate(0, live.nbytes, random() % 3);
      } catch (const OutOfMemory&) {
        ++num_full;
        for (size_t i = 0; i < 100 && !all.empty(); ++i) {
          CHECK(all.back().is_intact());
          requested -= static_cast<int64_t>(all.back().nbytes);
          release(all.back().memory.block);
          all.pop_back();
        }
        continue;
      }
      promote(live.memory.block);
      requested += static_cast<int64_t>(live.nbytes);
      fill(live);
      all.push_back(live);
    } else {
      auto& victim = all[random() % all.size()];
      CHECK(victim.is_intact());
      requested -= static_cast<int64_t>(victim.nbytes);
      release(victim.memory.block);
      std::swap(victim, all.back());
      all.pop_back();
    }
    if (step % 50 != 0) {
      continue;
    }
    const auto stats = memory_stats(0);
    CHECK_EQUAL(stats.requested_bytes[0].current, requested);
    CHECK_EQUAL(stats.allocation[0].current, static_cast<int64_t>(all.size()));
    CHECK(stats.allocated_bytes[0].current >= requested);
    CHECK_EQUAL(
        stats.active_bytes[0].current, stats.allocated_bytes[0].current);
    CHECK(stats.reserved_bytes[0].current >= stats.active_bytes[0].current);
    CHECK(stats.reserved_bytes[0].current <= static_cast<int64_t>(160 * kMiB));
    for (const auto& stat : {stats.allocated_bytes, stats.segment}) {
      CHECK_EQUAL(stat[0].current, stat[1].current + stat[2].current);
      CHECK_EQUAL(stat[0].current, stat[0].allocated - stat[0].freed);
      CHECK(stat[0].peak >= stat[0].current);
    }
  }
  CHECK(num_full > 0);
  // No two blocks overlap.
  std::sort(all.begin(), all.end(), [](const Live& a, const Live& b) {
    return a.memory.data < b.memory.data;
  });
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    CHECK(
        static_cast<char*>(all[i].memory.data) +
            block_size(all[i].memory.block) <=
        all[i + 1].memory.data);
  }
  for (const auto& live : all) {
    CHECK(live.is_intact());
    release(live.memory.block);
  }
  empty_cache(0);
  CHECK_EQUAL(memory_stats(0).reserved_bytes[0].current, 0);
}

TEST(memory_survives_threads_that_free_each_others_blocks) {
  configure(machine(1, static_cast<int64_t>(512 * kMiB)));
  constexpr int kThreads = 4;
  std::mutex mutex;
  std::vector<Live> shared;
  std::atomic<int> num_broken{0};
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      std::mt19937 random(static_cast<unsigned>(id));
      for (int step = 0; step < 5000; ++step) {
        Live live{
            {}, 1 + random() % 50000, static_cast<unsigned char>(random())};
        const auto queue = static_cast<uint32_t>(random() % 2);
        live.memory = allocate(0, live.nbytes, queue);
        fill(live);
        if (random() % 64 == 0) {
          record_use(live.memory.block, 1 - queue);
        }
        {
          const std::lock_guard<std::mutex> lock(mutex);
          shared.push_back(live);
          std::swap(shared[random() % shared.size()], shared.back());
          live = shared.back();
          shared.pop_back();
          if (shared.size() < 50) {
            shared.push_back(live);
            continue;
          }
        }
        num_broken += !live.is_intact();
        release(live.memory.block);
        if (random() % 1000 == 0) {
          empty_cache(0);
        }
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  for (const auto& live : shared) {
    num_broken += !live.is_intact();
    release(live.memory.block);
  }
  CHECK_EQUAL(num_broken.load(), 0);
  CHECK_EQUAL(memory_stats(0).allocated_bytes[0].current, 0);
  empty_cache(0);
  CHECK_EQUAL(memory_stats(0).reserved_bytes[0].current, 0);
}

// Processor time of this thread: other processes do not count.
double thread_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 +
         static_cast<double>(now.tv_nsec);
}

TEST(memory_times_an_allocation) {
  configure(machine());
  constexpr int kRounds = 200000;
  for (const size_t nbytes : {size_t{4096}, 4 * kMiB}) {
    release(allocate(0, nbytes, 0).block);
    const double start = thread_ns();
    for (int i = 0; i < kRounds; ++i) {
      release(allocate(0, nbytes, 0).block);
    }
    std::printf(
        "allocate and release %zu bytes: %.1f ns\n",
        nbytes,
        (thread_ns() - start) / kRounds);
  }
}

}  // namespace
}  // namespace neuron::runtime

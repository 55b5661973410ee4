// The allocator: sizes, reuse, counting, limits.
#include "runtime/memory.h"

#include <cstring>

#include "check.h"
#include "machine.h"
#include "runtime/segment.h"

namespace neuron::runtime {
namespace {

using test::machine;

int64_t allocated_bytes() { return memory_stats(0).allocated_bytes[0].current; }

int64_t reserved_bytes() { return memory_stats(0).reserved_bytes[0].current; }

TEST(size_classes_hold_their_requests_and_waste_little) {
  size_t before = 0;
  for (size_t nbytes = 1; nbytes <= kSmallLimit; ++nbytes) {
    const size_t index = size_class(nbytes);
    const size_t rounded = class_size(index);
    CHECK(index < kNumSmallClasses);
    CHECK(index == before || index == before + 1);
    CHECK(rounded >= nbytes && rounded % kGranule == 0);
    CHECK(rounded - nbytes < std::max(kGranule, nbytes / 32 + 1));
    CHECK_EQUAL(rounded_size(nbytes), rounded);
    before = index;
  }
  for (size_t nbytes = kSmallLimit; nbytes < kOwnSegment; nbytes += 997) {
    const size_t rounded = rounded_size(nbytes);
    CHECK(rounded >= nbytes && rounded - nbytes <= nbytes / 32);
    CHECK(rounded % kGranule == 0);
  }
  CHECK_EQUAL(rounded_size(kOwnSegment + 1), kOwnSegment + 1);
}

TEST(memory_is_null_for_zero_bytes) {
  configure(machine());
  const auto memory = allocate(0, 0, 0);
  CHECK(memory.data == nullptr && memory.block == nullptr);
  release(memory.block);
  CHECK_EQUAL(reserved_bytes(), 0);
}

TEST(memory_is_aligned_and_writable_at_every_size) {
  configure(machine());
  for (const size_t nbytes :
       {size_t{1},
        size_t{255},
        size_t{257},
        size_t{9000},
        kMiB - 1,
        kMiB,
        3 * kMiB + 5,
        16 * kMiB + 1}) {
    const auto memory = allocate(0, nbytes, 0);
    CHECK_EQUAL(reinterpret_cast<uintptr_t>(memory.data) % 256, size_t{0});
    std::memset(memory.data, 0x5a, nbytes);
    CHECK(block_size(memory.block) >= nbytes);
    CHECK_EQUAL(block_device(memory.block), 0);
  }
}

TEST(memory_reuses_a_released_block_on_its_queue_only) {
  configure(machine());
  const auto other = queue_from_pool(0, 0).id();
  for (const size_t nbytes : {size_t{1000}, 2 * kMiB, 20 * kMiB}) {
    const auto first = allocate(0, nbytes, 0);
    release(first.block);
    const auto elsewhere = allocate(0, nbytes, other);
    CHECK(elsewhere.data != first.data);
    const auto again = allocate(0, nbytes, 0);
    CHECK(again.data == first.data);
  }
}

TEST(memory_splits_and_coalesces_large_blocks) {
  configure(machine());
  const auto a = allocate(0, 4 * kMiB, 0);
  const auto b = allocate(0, 4 * kMiB, 0);
  const auto c = allocate(0, 4 * kMiB, 0);
  const auto* base = static_cast<char*>(a.data);
  CHECK(b.data == base + 4 * kMiB && c.data == base + 8 * kMiB);
  auto stats = memory_stats(0);
  CHECK_EQUAL(stats.segment[2].current, 1);
  CHECK_EQUAL(stats.inactive_split[2].current, 1);
  CHECK_EQUAL(
      stats.inactive_split_bytes[0].current, static_cast<int64_t>(20 * kMiB));
  // Freed in an order that joins to the left, to the right and on both sides.
  release(a.block);
  release(c.block);
  CHECK_EQUAL(memory_stats(0).inactive_split[2].current, 2);
  release(b.block);
  CHECK_EQUAL(memory_stats(0).inactive_split[2].current, 0);
  const auto whole = allocate(0, 15 * kMiB, 0);
  CHECK(whole.data == a.data);
  CHECK_EQUAL(memory_stats(0).segment[2].current, 1);
}

TEST(memory_takes_the_best_fitting_large_block) {
  configure(machine());
  const auto large = allocate(0, 48 * kMiB, 0);
  const auto fitting = allocate(0, 20 * kMiB, 0);
  release(large.block);
  release(fitting.block);
  CHECK(allocate(0, 18 * kMiB, 0).data == fitting.data);
}

TEST(memory_keeps_blocks_above_max_split_size_whole) {
  auto config = machine();
  config.max_split_size = static_cast<int64_t>(64 * kMiB);
  configure(config);
  const auto huge = allocate(0, 128 * kMiB, 0);
  release(huge.block);
  CHECK(allocate(0, 2 * kMiB, 0).data != huge.data);
  CHECK(allocate(0, 100 * kMiB, 0).data == huge.data);
}

TEST(memory_counts_requested_rounded_and_reserved_bytes) {
  configure(machine());
  const auto small = allocate(0, 1000, 0);
  const auto large = allocate(0, 20 * kMiB + 1, 0);
  auto stats = memory_stats(0);
  CHECK_EQUAL(stats.requested_bytes[1].current, 1000);
  CHECK_EQUAL(stats.allocated_bytes[1].current, 1024);
  CHECK_EQUAL(
      stats.allocated_bytes[2].current, static_cast<int64_t>(20 * kMiB + 1));
  CHECK_EQUAL(stats.reserved_bytes[1].current, static_cast<int64_t>(2 * kMiB));
  CHECK_EQUAL(stats.reserved_bytes[2].current, static_cast<int64_t>(22 * kMiB));
  CHECK_EQUAL(stats.allocation[0].current, 2);
  CHECK_EQUAL(stats.num_device_alloc, 2);
  const auto [free, total] = memory_info(0);
  CHECK_EQUAL(total - free, reserved_bytes());
  release(large.block);
  stats = memory_stats(0);
  CHECK_EQUAL(stats.allocated_bytes[0].current, 1024);
  CHECK_EQUAL(
      stats.allocated_bytes[0].peak, static_cast<int64_t>(20 * kMiB + 1025));
  CHECK_EQUAL(
      stats.allocated_bytes[0].freed, static_cast<int64_t>(20 * kMiB + 1));
  CHECK_EQUAL(stats.allocation[0].allocated, 2);
  CHECK_EQUAL(stats.allocation[0].freed, 1);
  reset_peak_memory_stats(0);
  reset_accumulated_memory_stats(0);
  stats = memory_stats(0);
  CHECK_EQUAL(stats.allocated_bytes[0].peak, 1024);
  CHECK_EQUAL(stats.allocation[0].allocated, 0);
  CHECK_EQUAL(stats.num_device_alloc, 0);
  release(small.block);
  CHECK_EQUAL(allocated_bytes(), 0);
}

TEST(scratch_is_not_counted_until_promoted) {
  configure(machine());
  const auto dropped = allocate_scratch(0, 5000, 0);
  const auto kept = allocate_scratch(0, 5000, 0);
  CHECK_EQUAL(allocated_bytes(), 0);
  CHECK_EQUAL(memory_stats(0).active[0].current, 0);
  CHECK_EQUAL(memory_stats(0).allocated_bytes[0].peak, 0);
  release(dropped.block);
  CHECK_EQUAL(memory_stats(0).allocation[0].freed, 0);
  promote(kept.block);
  CHECK_EQUAL(allocated_bytes(), 5120);
  CHECK_EQUAL(memory_stats(0).requested_bytes[0].current, 5000);
  promote(kept.block);
  CHECK_EQUAL(allocated_bytes(), 5120);
  release(kept.block);
  CHECK_EQUAL(allocated_bytes(), 0);
  // Last in, first out: the promoted block comes back as plain scratch.
  CHECK(allocate_scratch(0, 5000, 0).data == kept.data);
  CHECK_EQUAL(allocated_bytes(), 0);
}

TEST(memory_finds_the_block_in_use_behind_an_address) {
  configure(machine());
  for (const size_t nbytes : {size_t{3000}, 3 * kMiB}) {
    const auto memory = allocate(0, nbytes, 0);
    auto* data = static_cast<char*>(memory.data);
    CHECK(find_block(0, data) == memory.block);
    CHECK(find_block(0, data + nbytes - 1) == memory.block);
    release(memory.block);
    CHECK(find_block(0, data) == nullptr);
  }
  int local = 0;
  CHECK(find_block(0, &local) == nullptr);
}

TEST(empty_cache_gives_unused_segments_back_and_no_others) {
  configure(machine());
  const auto small = allocate(0, 1000, 0);
  const auto other_class = allocate(0, 90000, 0);
  const auto large = allocate(0, 2 * kMiB, 0);
  const auto own = allocate(0, 40 * kMiB, 0);
  std::memset(small.data, 7, 1000);
  release(own.block);
  release(large.block);
  release(other_class.block);
  empty_cache(0);
  CHECK_EQUAL(reserved_bytes(), static_cast<int64_t>(2 * kMiB));
  CHECK_EQUAL(static_cast<char*>(small.data)[999], 7);
  release(small.block);
  empty_cache(0);
  CHECK_EQUAL(reserved_bytes(), 0);
  CHECK_EQUAL(memory_stats(0).segment[0].current, 0);
  std::memset(allocate(0, 1000, 0).data, 1, 1000);
  std::memset(allocate(0, 2 * kMiB, 0).data, 1, 2 * kMiB);
}

TEST(out_of_memory_tells_the_numbers_and_leaves_the_device_usable) {
  configure(machine(1, static_cast<int64_t>(64 * kMiB)));
  const auto a = allocate(0, 20 * kMiB, 0);
  const auto b = allocate(0, 30 * kMiB, 0);
  const auto text = MESSAGE_OF(OutOfMemory, allocate(0, 16 * kMiB + 1, 0));
  CHECK_CONTAINS(text, "Out of memory on neuron:0");
  CHECK_CONTAINS(text, "16.00 MiB (16777217 bytes)");
  CHECK_CONTAINS(text, "64.00 MiB (67108864 bytes)");
  CHECK_CONTAINS(text, "50.00 MiB (52428800 bytes)");
  CHECK_CONTAINS(text, "NEURON_INSTANCE_TYPE");
  CHECK_CONTAINS(text, "smaller batch");
  try {
    allocate(0, 100 * kMiB, 0);
    CHECK(false);
  } catch (const OutOfMemory& error) {
    CHECK_EQUAL(error.facts.requested, static_cast<int64_t>(100 * kMiB));
    CHECK_EQUAL(error.facts.allocated, static_cast<int64_t>(50 * kMiB));
    CHECK_EQUAL(error.facts.capacity, static_cast<int64_t>(64 * kMiB));
  }
  CHECK_EQUAL(memory_stats(0).num_ooms, 2);
  CHECK_EQUAL(allocated_bytes(), static_cast<int64_t>(50 * kMiB));
  release(b.block);
  std::memset(allocate(0, 17 * kMiB, 0).data, 1, 17 * kMiB);
  release(a.block);
}

TEST(memory_gives_cached_segments_back_before_it_fails) {
  configure(machine(1, static_cast<int64_t>(64 * kMiB)));
  release(allocate(0, 40 * kMiB, 0).block);
  release(allocate(0, 1000, 0).block);
  std::memset(allocate(0, 62 * kMiB, 0).data, 1, 62 * kMiB);
  CHECK_EQUAL(memory_stats(0).num_alloc_retries, 1);
  CHECK_EQUAL(memory_stats(0).num_ooms, 0);
  CHECK_EQUAL(reserved_bytes(), static_cast<int64_t>(62 * kMiB));
}

TEST(memory_fills_the_last_bytes_of_the_device) {
  // 40 MiB hold one 32 MiB segment; the rest is smaller than a segment.
  configure(machine(1, static_cast<int64_t>(40 * kMiB)));
  for (int i = 0; i < 10; ++i) {
    allocate(0, 4 * kMiB, 0);
  }
  CHECK_EQUAL(reserved_bytes(), static_cast<int64_t>(40 * kMiB));
  (void)MESSAGE_OF(OutOfMemory, allocate(0, 1, 0));
}

TEST(memory_fraction_limits_what_is_reserved) {
  configure(machine(1, static_cast<int64_t>(100 * kMiB)));
  CHECK_EQUAL(memory_fraction(0), 1.0);
  set_memory_fraction(0, 0.5);
  CHECK_EQUAL(memory_fraction(0), 0.5);
  const auto text = MESSAGE_OF(OutOfMemory, allocate(0, 60 * kMiB, 0));
  CHECK_CONTAINS(text, "50.00 MiB");
  CHECK_CONTAINS(text, "set_per_process_memory_fraction");
  set_memory_fraction(0, 1.0);
  allocate(0, 60 * kMiB, 0);
  for (const double wrong : {0.0, -0.5, 1.5}) {
    CHECK_CONTAINS(
        MESSAGE_OF(std::invalid_argument, set_memory_fraction(0, wrong)),
        std::to_string(wrong));
  }
}

TEST(memory_that_the_host_lacks_is_an_error_not_a_kill) {
  const size_t too_much = available_host_memory() + 1024 * kMiB;
  configure(machine(1, int64_t{1} << 50));
  const auto text = MESSAGE_OF(OutOfMemory, allocate(0, too_much, 0));
  CHECK_CONTAINS(text, "this host has not that much memory");
  CHECK_CONTAINS(text, "NEURON_DRIVER=dry");
  CHECK_EQUAL(reserved_bytes(), 0);
  allocate(0, 1000, 0);
}

OutOfMemory::Facts seen_facts{};

TEST(out_of_memory_hook_sees_the_facts_and_may_use_the_allocator) {
  configure(machine(1, static_cast<int64_t>(64 * kMiB)));
  set_out_of_memory_hook([](const OutOfMemory::Facts& facts) {
    seen_facts = facts;
    release(allocate(0, 1000, 0).block);
  });
  (void)MESSAGE_OF(OutOfMemory, allocate(0, 65 * kMiB, 0));
  CHECK_EQUAL(seen_facts.requested, static_cast<int64_t>(65 * kMiB));
}

TEST(memory_of_devices_is_counted_apart) {
  configure(machine(2, static_cast<int64_t>(64 * kMiB)));
  allocate(0, 60 * kMiB, 0);
  const auto other = allocate(1, 60 * kMiB, 0);
  CHECK_EQUAL(block_device(other.block), 1);
  CHECK_EQUAL(allocated_bytes(), static_cast<int64_t>(60 * kMiB));
  CHECK(find_block(0, other.data) == nullptr);
}

}  // namespace
}  // namespace neuron::runtime

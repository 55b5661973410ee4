// Snapshots and traces of the allocator, and memory that is only addresses.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "check.h"
#include "machine.h"

namespace neuron::runtime {
namespace {

using test::Gate;
using test::hold;
using test::machine;

constexpr size_t kMiB = size_t{1} << 20;

TEST(snapshot_covers_every_segment_without_gaps) {
  configure(machine());
  auto& side = queue_from_pool(0, 0);
  const auto small = allocate(0, 1000, 0);
  release(allocate(0, 30000, 0).block);
  const auto large = allocate(0, 3 * kMiB, 0);
  const auto waiting = allocate(0, 5 * kMiB, 0);
  Gate gate;
  hold(side, gate);
  record_use(waiting.block, side.id());
  release(waiting.block);
  const auto stats = memory_stats(0);
  size_t reserved = 0;
  size_t allocated = 0;
  size_t active = 0;
  size_t requested = 0;
  for (const auto& segment : memory_snapshot(0)) {
    size_t covered = 0;
    for (const auto& block : segment.blocks) {
      const auto address = segment.address + covered;
      if (address == reinterpret_cast<size_t>(small.data)) {
        CHECK(block.allocated && block.active && !segment.is_large);
        CHECK_EQUAL(block.requested_size, size_t{1000});
      } else if (address == reinterpret_cast<size_t>(large.data)) {
        CHECK(block.allocated && block.active && segment.is_large);
      } else if (address == reinterpret_cast<size_t>(waiting.data)) {
        CHECK(!block.allocated && block.active);
      } else {
        CHECK(!block.allocated && !block.active);
      }
      covered += block.size;
    }
    CHECK_EQUAL(covered, segment.total_size);
    reserved += segment.total_size;
    allocated += segment.allocated_size;
    active += segment.active_size;
    requested += segment.requested_size;
  }
  CHECK_EQUAL(static_cast<int64_t>(reserved), stats.reserved_bytes[0].current);
  CHECK_EQUAL(
      static_cast<int64_t>(allocated), stats.allocated_bytes[0].current);
  CHECK_EQUAL(static_cast<int64_t>(active), stats.active_bytes[0].current);
  CHECK_EQUAL(
      static_cast<int64_t>(requested), stats.requested_bytes[0].current);
  gate.open();
  side.wait_idle();
}

std::shared_ptr<void> context_of_caller() {
  return std::make_shared<std::string>("caller");
}

std::string text_of(const std::shared_ptr<void>& context) {
  return context ? *static_cast<std::string*>(context.get()) : "";
}

TEST(trace_lists_what_happened_in_order_with_context) {
  configure(machine(1, static_cast<int64_t>(64 * kMiB)));
  release(allocate(0, 100, 0).block);
  start_memory_trace(100, &context_of_caller);
  const auto memory = allocate(0, 20 * kMiB, 0);
  release(allocate_scratch(0, 100, 0).block);
  (void)MESSAGE_OF(OutOfMemory, allocate(0, 200 * kMiB, 0));
  release(memory.block);
  empty_cache(0);
  stop_memory_trace();
  release(allocate(0, 100, 0).block);
  std::vector<TraceEntry> entries;
  for (const auto& entry : memory_trace(0)) {
    // The idle small segment may go at the failure or at the end.
    if (entry.size != 2 * kMiB) {
      entries.push_back(entry);
    }
  }
  const std::vector<TraceAction> expected{
      TraceAction::segment_alloc,
      TraceAction::alloc,
      TraceAction::oom,
      TraceAction::free_requested,
      TraceAction::free_completed,
      TraceAction::segment_free};
  CHECK_EQUAL(entries.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    CHECK(entries[i].action == expected[i]);
    CHECK(i == 0 || entries[i].time_us >= entries[i - 1].time_us);
  }
  CHECK_EQUAL(entries[1].address, reinterpret_cast<size_t>(memory.data));
  CHECK_EQUAL(entries[1].size, 20 * kMiB);
  CHECK_EQUAL(text_of(entries[1].context), "caller");
  CHECK_EQUAL(entries[2].size, 200 * kMiB);
}

TEST(trace_keeps_the_newest_entries_and_live_blocks_their_context) {
  configure(machine());
  start_memory_trace(10, &context_of_caller);
  const auto kept = allocate(0, 100, 0);
  for (int i = 0; i < 50; ++i) {
    release(allocate(0, 5000, 0).block);
  }
  const auto entries = memory_trace(0);
  CHECK_EQUAL(entries.size(), size_t{10});
  CHECK(entries.back().action == TraceAction::free_completed);
  bool found = false;
  for (const auto& segment : memory_snapshot(0)) {
    for (const auto& block : segment.blocks) {
      found = found || (block.allocated && text_of(block.context) == "caller");
    }
  }
  CHECK(found);
  release(kept.block);
  start_memory_trace(10, nullptr);
  CHECK_EQUAL(memory_trace(0).size(), size_t{0});
}

size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  size_t total = 0;
  size_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

TEST(address_only_memory_commits_nothing) {
  constexpr auto capacity = int64_t{1} << 40;
  auto config = machine(1, capacity);
  config.backing = MemoryBacking::address_only;
  configure(config);
  const auto before = resident_bytes();
  std::vector<Allocation> all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(allocate(0, size_t{8} << 30, 0));
    all.push_back(allocate(0, 5000, 0));
  }
  CHECK(resident_bytes() - before < 16 * kMiB);
  CHECK_EQUAL(memory_stats(0).allocated_bytes[2].current, int64_t{800} << 30);
  (void)MESSAGE_OF(OutOfMemory, allocate(0, size_t{300} << 30, 0));
  const pid_t child = ::fork();
  if (child == 0) {
    // The fault is expected: keep the sanitizers' reports out of the way.
    ::close(STDERR_FILENO);
    *static_cast<volatile char*>(all[1].data) = 1;
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(!(WIFEXITED(status) && WEXITSTATUS(status) == 0));
  for (const auto& memory : all) {
    release(memory.block);
  }
  empty_cache(0);
  CHECK_EQUAL(memory_stats(0).reserved_bytes[0].current, 0);
}

// What a fixed sequence of requests leaves in the statistics.
std::string counts_with(MemoryBacking backing) {
  int ends[2];
  CHECK(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto config = machine(1, static_cast<int64_t>(200 * kMiB));
    config.backing = backing;
    configure(config);
    std::vector<Allocation> all;
    for (size_t i = 1; i < 200; ++i) {
      try {
        all.push_back(allocate(0, i * i * 700, 0));
      } catch (const OutOfMemory&) {
        release(all.back().block);
        all.pop_back();
      }
      if (i % 3 == 0) {
        release(all.front().block);
        all.erase(all.begin());
      }
    }
    const auto stats = memory_stats(0);
    std::ostringstream text;
    for (const auto& stat :
         {stats.allocated_bytes, stats.reserved_bytes, stats.active_bytes}) {
      text << stat[0].current << " " << stat[0].peak << " " << stat[2].allocated
           << " ";
    }
    text << stats.num_ooms << " " << stats.num_alloc_retries;
    const auto out = text.str();
    const bool good = ::write(ends[1], out.data(), out.size()) ==
                      static_cast<ssize_t>(out.size());
    ::_exit(good ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text(1000, '\0');
  const auto length = ::read(ends[0], text.data(), text.size());
  text.resize(length > 0 ? static_cast<size_t>(length) : 0);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK_EQUAL(status, 0);
  return text;
}

TEST(address_only_memory_counts_to_the_byte_like_committed_memory) {
  const auto committed = counts_with(MemoryBacking::committed);
  CHECK(committed.size() > 20);
  CHECK_EQUAL(counts_with(MemoryBacking::address_only), committed);
}

}  // namespace
}  // namespace neuron::runtime

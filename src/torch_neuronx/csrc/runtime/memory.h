// Device memory: a caching allocator of segments, per device and queue.
//
// Requests below 1 MiB come from the small pool: blocks of one size class cut
// from 2 MiB segments. Larger ones come from the large pool: below 16 MiB from
// 32 MiB segments that are split and coalesced, from 16 MiB on from segments
// of their own. Below 16 MiB sizes are rounded up to a size class: multiples
// of 256 bytes up to 8 KiB, then 32 classes per doubling (at most 3 % more).
// Segments stay cached, so their pages are touched once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/device.h"
#include "runtime/error.h"

namespace neuron::runtime {

struct Block;

struct Allocation {
  void* data;
  Block* block;
};

// At least 256-byte aligned; {nullptr, nullptr} for zero bytes. Throws
// OutOfMemory after waiting for queued work and giving cached segments back
// in vain.
Allocation allocate(int device, size_t nbytes, uint32_t queue);
// Called in the failing thread, without locks, before OutOfMemory is thrown.
void set_out_of_memory_hook(void (*hook)(const OutOfMemory::Facts&));

// The same memory, not counted as allocated until promote().
Allocation allocate_scratch(int device, size_t nbytes, uint32_t queue);
void promote(Block* block) noexcept;

// From any thread. The block may be reused at once on its queue, whose work
// is ordered; where record_use named others, after the work they have by then.
void release(Block* block) noexcept;
// Throws std::runtime_error when the device has no such queue.
void record_use(Block* block, uint32_t queue);

size_t block_size(const Block* block);
int block_device(const Block* block);
// The block in use that holds `data`, or null. Slow.
Block* find_block(int device, const void* data);

// Gives segments without blocks in use back, after all queued work.
void empty_cache(int device);

// Share of the capacity this process may reserve, in (0, 1].
void set_memory_fraction(int device, double fraction);
double memory_fraction(int device);
// (free, total) bytes of the modelled HBM.
std::pair<int64_t, int64_t> memory_info(int device);

struct Stat {
  int64_t current = 0;
  int64_t peak = 0;
  int64_t allocated = 0;  // sum of increases since the reset
  int64_t freed = 0;      // sum of decreases since the reset
};

// All, small pool, large pool.
using StatArray = std::array<Stat, 3>;

struct MemoryStats {
  StatArray allocation;  // blocks handed out
  StatArray segment;
  StatArray active;  // handed out, or waiting for another queue
  StatArray inactive_split;
  StatArray allocated_bytes;
  StatArray reserved_bytes;
  StatArray active_bytes;
  StatArray inactive_split_bytes;
  StatArray requested_bytes;  // before rounding
  int64_t num_alloc_retries = 0;
  int64_t num_ooms = 0;
  int64_t num_device_alloc = 0;
  int64_t num_device_free = 0;
};

MemoryStats memory_stats(int device);
void reset_peak_memory_stats(int device);
void reset_accumulated_memory_stats(int device);

struct BlockInfo {
  size_t size;
  size_t requested_size;
  bool allocated;
  bool active;
  std::shared_ptr<void> context;
};

struct SegmentInfo {
  int device;
  size_t address;
  size_t total_size;
  size_t allocated_size;
  size_t active_size;
  size_t requested_size;
  uint32_t queue;
  bool is_large;
  std::vector<BlockInfo> blocks;  // in address order, without gaps
};

enum class TraceAction {
  alloc,
  free_requested,
  free_completed,
  segment_alloc,
  segment_free,
  oom
};

struct TraceEntry {
  TraceAction action;
  size_t address;  // for oom: bytes free on the device
  size_t size;
  uint32_t queue;
  int64_t time_us;  // since the epoch
  std::shared_ptr<void> context;
};

std::vector<SegmentInfo> memory_snapshot(int device);
// Forgets older events and keeps the last `max_entries` of those to come, also
// after the stop. `context` (may be null) is called, in the thread that
// allocates and without locks, for what should go with each.
void start_memory_trace(size_t max_entries, std::shared_ptr<void> (*context)());
void stop_memory_trace();
std::vector<TraceEntry> memory_trace(int device);
size_t memory_trace_length(int device);

}  // namespace neuron::runtime

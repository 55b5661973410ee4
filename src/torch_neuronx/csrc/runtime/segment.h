// Segments: what the allocator gets from the system, and how sizes round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/device.h"

namespace neuron::runtime {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;
constexpr size_t kGranule = 256;
constexpr size_t kSmallLimit = kMiB;       // requests below are small
constexpr size_t kOwnSegment = 16 * kMiB;  // requests from here get their own
constexpr size_t kSmallSegment = 2 * kMiB;
constexpr size_t kLargeSegment = 32 * kMiB;
constexpr size_t kHugePage = 2 * kMiB;

class Queue;
struct Segment;

struct Use {
  Queue* queue;
  uint64_t ticket;
};

// A piece of a segment. Large blocks of a segment are linked by address;
// small ones sit in their segment's list.
struct Block {
  Segment* segment = nullptr;
  char* data = nullptr;
  size_t size = 0;     // of the piece
  size_t charged = 0;  // the rounded request, what statistics count
  size_t requested = 0;
  uint32_t queue = 0;
  uint16_t size_class = 0;  // of small blocks
  bool in_use = false;      // handed out, or waiting for other queues
  bool allocated = false;   // handed out and counted as allocated
  bool active = false;      // counted as active: allocated, or waiting since
  Block* next_free = nullptr;
  Block* before = nullptr;
  Block* after = nullptr;
  std::vector<Use> uses;  // by other queues
  std::shared_ptr<void> context;
};

struct Segment {
  int device = 0;
  char* base = nullptr;
  size_t size = 0;
  uint32_t queue = 0;
  bool is_large = false;
  bool is_leaving = false;  // about to be given back
  size_t num_in_use = 0;
  uint64_t freed_at = 0;   // the pool's count of releases at the last one here
  size_t cut = 0;          // bytes of a small segment already cut into blocks
  Block* first = nullptr;  // of a large segment
  std::vector<Block*> small_blocks;  // in address order
};

constexpr size_t kNumSmallClasses = 32 + 7 * 32;

// The class of a small request; class_size of it is at least the request.
size_t size_class(size_t nbytes) noexcept;
size_t class_size(size_t size_class) noexcept;
// What a request of any size is rounded to.
size_t rounded_size(size_t nbytes) noexcept;

// What the host can give without killing anyone, as far as it tells.
size_t available_host_memory() noexcept;

// Memory from the system, huge-page aligned; null if it has none. Address-only
// memory must not be touched.
char* map_memory(size_t nbytes, MemoryBacking backing) noexcept;
void unmap_memory(char* base, size_t nbytes) noexcept;

}  // namespace neuron::runtime

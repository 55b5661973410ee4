// The caching allocator of one device. Callers hold Pool::mutex around every
// member, except where said.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include "runtime/counter.h"
#include "runtime/memory.h"
#include "runtime/segment.h"

namespace neuron::runtime {

class Pool {
 public:
  explicit Pool(int device) : device_(device) {}

  std::mutex mutex;

  // Null when neither the cache nor a new segment can serve the request: then
  // call empty_cache, allocate_again, and at last note_out_of_memory.
  Block* allocate(size_t nbytes, uint32_t queue, bool counted);
  Block* allocate_again(size_t nbytes, uint32_t queue, bool counted);
  OutOfMemory::Facts note_out_of_memory(size_t requested);
  void promote(Block* block) noexcept;
  void release(Block* block);
  void record_use(Block* block, uint32_t queue);
  Block* find(const void* data) const;

  // Gives unused segments back. Takes the lock itself: it waits for queues
  // without it.
  void empty_cache();

  MemoryStats stats() const;
  void reset_peak();
  void reset_accumulated();
  std::vector<SegmentInfo> snapshot() const;
  std::vector<TraceEntry> trace();
  size_t trace_length() const { return trace_.size(); }

  double fraction = 1.0;
  // What goes with the next traced event; gathered before the lock is taken,
  // because gathering may need Python's lock.
  std::shared_ptr<void> context;
  int64_t limit() const;
  int64_t reserved() const { return reserved_bytes_.current(); }

 private:
  struct BySize {
    bool operator()(const Block* a, const Block* b) const {
      return a->size != b->size ? a->size < b->size : a->data < b->data;
    }
  };
  // The free blocks of one queue.
  struct Free {
    std::array<Block*, kNumSmallClasses> small{};
    Segment* cutting = nullptr;  // the small segment with room left
    std::set<Block*, BySize> large;
  };

  Block* take_small(size_t nbytes, uint32_t queue);
  Block* take_large(size_t rounded, uint32_t queue);
  void split(Block* block, size_t size);
  Segment* add_segment(size_t nbytes, uint32_t queue, bool is_large);
  void make_free(Block* block);
  void add_free(Block* block);
  void remove_free(Block* block);
  Block* join(Block* block, Block* next);
  void reclaim_waiting();
  void give_back(uint64_t freed_before);
  static void forget_leaving(Free& free);
  void drop(Segment* segment);

  std::array<Counter*, 9> counters() noexcept {
    return {
        &allocation_,
        &segment_,
        &active_,
        &allocated_bytes_,
        &reserved_bytes_,
        &active_bytes_,
        &requested_bytes_,
        &inactive_split_,
        &inactive_split_bytes_};
  }
  void count_released(Block& block) noexcept;
  void count_inactive(Block& block) noexcept;
  bool is_tracing();
  void note(TraceAction action, size_t address, size_t size, uint32_t queue);
  void note(TraceAction action, Block& block);

  const int device_;
  std::unordered_map<uint32_t, std::unique_ptr<Free>> free_;
  Free* last_free_ = nullptr;  // of last_queue_: the usual case skips the map
  uint32_t last_queue_ = 0;
  std::map<uintptr_t, Segment*> segments_;
  std::vector<Block*> waiting_;  // released, still used by other queues
  std::vector<Block*> spare_;    // Block objects for reuse
  Counter allocation_;
  Counter segment_;
  Counter active_;
  Counter allocated_bytes_;
  Counter reserved_bytes_;
  Counter active_bytes_;
  Counter requested_bytes_;
  Counter inactive_split_;
  Counter inactive_split_bytes_;
  int64_t num_alloc_retries_ = 0;
  int64_t num_ooms_ = 0;
  uint64_t num_freed_ = 0;    // blocks, ever
  bool host_failed_ = false;  // the last failure was the host's
  std::deque<TraceEntry> trace_;
  uint64_t trace_generation_ = 0;

  Free& free_of(uint32_t queue) {
    return last_free_ != nullptr && last_queue_ == queue ? *last_free_
                                                         : find_free(queue);
  }
  Free& find_free(uint32_t queue);
  Block* new_block(Segment* segment, char* data, size_t size);
};

// How traces are kept, for all pools.
struct TraceSettings {
  std::atomic<bool> enabled{false};
  std::atomic<uint64_t> generation{0};  // of starts; older traces are void
  std::atomic<size_t> max_entries{0};
  std::atomic<std::shared_ptr<void> (*)()> context{nullptr};
};
inline constinit TraceSettings trace_settings;

}  // namespace neuron::runtime

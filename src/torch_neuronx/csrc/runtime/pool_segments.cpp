// Getting segments from the system and giving them back.
#include <algorithm>

#include "runtime/pool.h"
#include "runtime/queue.h"

namespace neuron::runtime {

int64_t Pool::limit() const {
  return static_cast<int64_t>(
      fraction * static_cast<double>(device_spec(device_).memory_capacity));
}

Segment* Pool::add_segment(size_t nbytes, uint32_t queue, bool is_large) {
  const auto wanted = static_cast<int64_t>(nbytes);
  host_failed_ = false;
  if (reserved() + wanted > limit()) {
    return nullptr;
  }
  char* base = map_memory(nbytes, config().backing);
  if (base == nullptr) {
    host_failed_ = true;
    return nullptr;
  }
  auto* segment = new Segment();
  segment->device = device_;
  segment->base = base;
  segment->size = nbytes;
  segment->queue = queue;
  segment->is_large = is_large;
  if (is_large) {
    segment->first = new_block(segment, base, nbytes);
  }
  segments_[reinterpret_cast<uintptr_t>(base)] = segment;
  segment_.increase(is_large, 1);
  reserved_bytes_.increase(is_large, wanted);
  note(
      TraceAction::segment_alloc,
      reinterpret_cast<size_t>(base),
      nbytes,
      queue);
  return segment;
}

void Pool::empty_cache() {
  // Work queued before a block was released may still use it, so segments go
  // only after a wait that began when they were free already. Twice, because
  // the work waited for may release blocks itself.
  for (int pass = 0; pass < 2; ++pass) {
    uint64_t freed_before = 0;
    {
      std::lock_guard<std::mutex> lock(mutex);
      reclaim_waiting();
      freed_before = num_freed_;
    }
    for (auto* queue : queues(device_)) {
      queue->wait_passed(queue->submitted());
    }
    std::lock_guard<std::mutex> lock(mutex);
    reclaim_waiting();
    give_back(freed_before);
    if (num_freed_ == freed_before) {
      return;
    }
  }
}

void Pool::give_back(uint64_t freed_before) {
  std::vector<Segment*> leaving;
  for (const auto& [base, segment] : segments_) {
    if (segment->num_in_use == 0 && segment->freed_at <= freed_before) {
      segment->is_leaving = true;
      leaving.push_back(segment);
    }
  }
  if (leaving.empty()) {
    return;
  }
  for (auto& [queue, free] : free_) {
    forget_leaving(*free);
  }
  for (auto* segment : leaving) {
    drop(segment);
  }
}

void Pool::forget_leaving(Free& free) {
  for (auto*& head : free.small) {
    for (Block** link = &head; *link != nullptr;) {
      if ((*link)->segment->is_leaving) {
        *link = (*link)->next_free;
      } else {
        link = &(*link)->next_free;
      }
    }
  }
  std::erase_if(free.large, [](const Block* block) {
    return block->segment->is_leaving;
  });
  if (free.cutting != nullptr && free.cutting->is_leaving) {
    free.cutting = nullptr;
  }
}

void Pool::drop(Segment* segment) {
  for (auto* block = segment->first; block != nullptr; block = block->after) {
    spare_.push_back(block);
  }
  spare_.insert(
      spare_.end(), segment->small_blocks.begin(), segment->small_blocks.end());
  segment_.decrease(segment->is_large, 1);
  reserved_bytes_.decrease(
      segment->is_large, static_cast<int64_t>(segment->size));
  note(
      TraceAction::segment_free,
      reinterpret_cast<size_t>(segment->base),
      segment->size,
      segment->queue);
  segments_.erase(reinterpret_cast<uintptr_t>(segment->base));
  unmap_memory(segment->base, segment->size);
  delete segment;
}

Block* Pool::find(const void* data) const {
  const auto address = reinterpret_cast<uintptr_t>(data);
  auto next = segments_.upper_bound(address);
  if (next == segments_.begin()) {
    return nullptr;
  }
  const auto* segment = std::prev(next)->second;
  auto holds = [&](const Block* block) {
    const auto start = reinterpret_cast<uintptr_t>(block->data);
    return address >= start && address < start + block->size;
  };
  for (auto* block = segment->first; block != nullptr; block = block->after) {
    if (holds(block)) {
      return block->in_use ? block : nullptr;
    }
  }
  for (auto* block : segment->small_blocks) {
    if (holds(block)) {
      return block->in_use ? block : nullptr;
    }
  }
  return nullptr;
}

OutOfMemory::Facts Pool::note_out_of_memory(size_t requested) {
  ++num_ooms_;
  size_t largest = 0;
  for (const auto& [queue, free] : free_) {
    if (!free->large.empty()) {
      largest = std::max(largest, (*free->large.rbegin())->size);
    }
  }
  OutOfMemory::Facts facts{};
  facts.device = device_;
  facts.requested = static_cast<int64_t>(requested);
  facts.allocated = allocated_bytes_.current();
  facts.reserved = reserved();
  facts.capacity = device_spec(device_).memory_capacity;
  facts.limit = limit();
  facts.largest_free = static_cast<int64_t>(largest);
  facts.host_failed = host_failed_;
  note(
      TraceAction::oom,
      static_cast<size_t>(std::max<int64_t>(0, facts.limit - facts.reserved)),
      requested,
      0);
  return facts;
}

}  // namespace neuron::runtime

#include "runtime/pool.h"

#include <algorithm>

#include "runtime/error.h"
#include "runtime/queue.h"

namespace neuron::runtime {
namespace {

constexpr size_t kSmallestSplit = kSmallLimit; // smaller rests stay attached

size_t pool_index(const Segment& segment) {
  return segment.is_large ? 2 : 1;
}

} // namespace

Pool::Free& Pool::free_of(uint32_t queue) {
  if (last_free_ == nullptr || last_queue_ != queue) {
    auto& slot = free_[queue];
    if (slot == nullptr) {
      slot = std::make_unique<Free>();
    }
    last_free_ = slot.get();
    last_queue_ = queue;
  }
  return *last_free_;
}

Block* Pool::new_block(Segment* segment, char* data, size_t size) {
  Block* block = nullptr;
  if (spare_.empty()) {
    block = new Block();
  } else {
    block = spare_.back();
    spare_.pop_back();
    *block = Block();
  }
  block->segment = segment;
  block->data = data;
  block->size = size;
  block->queue = segment->queue;
  return block;
}

Block* Pool::allocate(size_t nbytes, uint32_t queue, bool counted) {
  if (!waiting_.empty()) {
    reclaim_waiting();
  }
  const size_t rounded = rounded_size(nbytes);
  Block* block = nbytes < kSmallLimit ? take_small(nbytes, queue)
                                      : take_large(rounded, queue);
  if (block == nullptr) {
    return nullptr;
  }
  block->in_use = true;
  block->charged = rounded;
  block->requested = nbytes;
  ++block->segment->num_in_use;
  if (counted) {
    promote(block);
  }
  return block;
}

Block* Pool::take_small(size_t nbytes, uint32_t queue) {
  auto& free = free_of(queue);
  const size_t index = size_class(nbytes);
  if (auto* block = free.small[index]) {
    free.small[index] = block->next_free;
    block->next_free = nullptr;
    return block;
  }
  const size_t size = class_size(index);
  if (free.cutting == nullptr || free.cutting->cut + size > kSmallSegment) {
    auto* fresh = add_segment(kSmallSegment, queue, /*is_large=*/false);
    if (fresh == nullptr) {
      return nullptr;
    }
    free.cutting = fresh;
  }
  auto* segment = free.cutting;
  auto* block = new_block(segment, segment->base + segment->cut, size);
  block->size_class = static_cast<uint16_t>(index);
  segment->cut += size;
  segment->small_blocks.push_back(block);
  return block;
}

Block* Pool::take_large(size_t rounded, uint32_t queue) {
  const int64_t max_split = config().max_split_size;
  auto& large = free_of(queue).large;
  Block wanted;
  wanted.size = rounded;
  auto found = large.lower_bound(&wanted);
  // A block too large to split is kept for requests of its own kind.
  if (found != large.end() && max_split > 0 &&
      static_cast<int64_t>((*found)->size) > max_split &&
      static_cast<int64_t>(rounded) <= max_split) {
    found = large.end();
  }
  Block* block = nullptr;
  if (found != large.end()) {
    block = *found;
    large.erase(found);
  } else {
    const size_t size = rounded < kOwnSegment
        ? kLargeSegment
        : (rounded + kHugePage - 1) / kHugePage * kHugePage;
    auto* segment = add_segment(size, queue, /*is_large=*/true);
    if (segment == nullptr) {
      return nullptr;
    }
    block = segment->first;
  }
  return split(block, rounded);
}

Block* Pool::split(Block* block, size_t size) {
  const size_t aligned = (size + kGranule - 1) / kGranule * kGranule;
  if (block->size - aligned < kSmallestSplit) {
    return block;
  }
  auto* rest = new_block(
      block->segment, block->data + aligned, block->size - aligned);
  block->size = aligned;
  rest->before = block;
  rest->after = block->after;
  if (rest->after != nullptr) {
    rest->after->before = rest;
  }
  block->after = rest;
  free_of(block->queue).large.insert(rest);
  return block;
}

Segment* Pool::add_segment(size_t nbytes, uint32_t queue, bool is_large) {
  const auto wanted = static_cast<int64_t>(nbytes);
  host_failed_ = false;
  if (reserved() + wanted > limit()) {
    ++stats_.num_alloc_retries;
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
  for (const size_t pool : {size_t{0}, pool_index(*segment)}) {
    stats_.segment[pool].add(1);
    stats_.reserved_bytes[pool].add(wanted);
  }
  ++stats_.num_device_alloc;
  note(
      TraceAction::segment_alloc,
      reinterpret_cast<size_t>(base),
      nbytes,
      queue);
  return segment;
}

void Pool::release(Block* block) {
  if (block->allocated) {
    note(TraceAction::free_requested, *block);
    count_allocated(*block, -1);
  }
  std::erase_if(block->uses, [&](Use& use) {
    auto& queue = queue_by_id(device_, use.queue);
    use.ticket = queue.submitted();
    return queue.completed() >= use.ticket;
  });
  if (!block->uses.empty()) {
    waiting_.push_back(block);
    return;
  }
  make_free(block);
}

void Pool::make_free(Block* block) {
  if (block->allocated) {
    note(TraceAction::free_completed, *block);
    count_active(*block, -1);
  }
  block->in_use = false;
  block->allocated = false;
  block->context.reset();
  auto* segment = block->segment;
  --segment->num_in_use;
  auto& free = free_of(block->queue);
  if (!segment->is_large) {
    block->next_free = free.small[block->size_class];
    free.small[block->size_class] = block;
    return;
  }
  if (block->before != nullptr && !block->before->in_use) {
    free.large.erase(block->before);
    block = join(block->before, block);
  }
  if (block->after != nullptr && !block->after->in_use) {
    free.large.erase(block->after);
    block = join(block, block->after);
  }
  free.large.insert(block);
}

Block* Pool::join(Block* block, Block* next) {
  block->size += next->size;
  block->after = next->after;
  if (block->after != nullptr) {
    block->after->before = block;
  }
  spare_.push_back(next);
  return block;
}

void Pool::record_use(Block* block, uint32_t queue) {
  if (queue == block->queue) {
    return;
  }
  for (const auto& use : block->uses) {
    if (use.queue == queue) {
      return;
    }
  }
  block->uses.push_back({queue, 0});
}

void Pool::reclaim_waiting() {
  std::erase_if(waiting_, [&](Block* block) {
    for (const auto& use : block->uses) {
      if (queue_by_id(device_, use.queue).completed() < use.ticket) {
        return false;
      }
    }
    block->uses.clear();
    make_free(block);
    return true;
  });
}

void Pool::empty_cache() {
  for (auto* queue : queues(device_)) {
    queue->wait_passed(queue->submitted());
  }
  std::lock_guard<std::mutex> lock(mutex);
  reclaim_waiting();
  release_free_segments();
}

void Pool::release_free_segments() {
  std::vector<Segment*> unused;
  for (const auto& [base, segment] : segments_) {
    if (segment->num_in_use == 0) {
      unused.push_back(segment);
    }
  }
  for (auto* segment : unused) {
    drop(segment);
  }
}

void Pool::drop(Segment* segment) {
  auto& free = free_of(segment->queue);
  if (segment->is_large) {
    // Coalesced: one free block is left.
    free.large.erase(segment->first);
    spare_.push_back(segment->first);
  } else {
    for (auto*& head : free.small) {
      Block** link = &head;
      while (*link != nullptr) {
        if ((*link)->segment == segment) {
          *link = (*link)->next_free;
        } else {
          link = &(*link)->next_free;
        }
      }
    }
    spare_.insert(
        spare_.end(),
        segment->small_blocks.begin(),
        segment->small_blocks.end());
    if (free.cutting == segment) {
      free.cutting = nullptr;
    }
  }
  for (const size_t pool : {size_t{0}, pool_index(*segment)}) {
    stats_.segment[pool].add(-1);
    stats_.reserved_bytes[pool].add(-static_cast<int64_t>(segment->size));
  }
  ++stats_.num_device_free;
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

int64_t Pool::limit() const {
  return static_cast<int64_t>(
      fraction * static_cast<double>(device_spec(device_).memory_capacity));
}

void Pool::out_of_memory(size_t requested) {
  ++stats_.num_ooms;
  size_t largest = 0;
  for (const auto& [queue, free] : free_) {
    if (!free->large.empty()) {
      largest = std::max(largest, (*free->large.rbegin())->size);
    }
  }
  OutOfMemory::Facts facts{};
  facts.device = device_;
  facts.requested = static_cast<int64_t>(requested);
  facts.allocated = stats_.allocated_bytes[0].current;
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
  throw OutOfMemory(facts);
}

} // namespace neuron::runtime

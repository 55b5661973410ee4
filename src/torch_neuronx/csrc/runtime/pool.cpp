// Handing blocks out and taking them back.
#include "runtime/pool.h"
#include "runtime/queue.h"

namespace neuron::runtime {
namespace {

constexpr size_t kSmallestSplit = kSmallLimit;  // smaller rests stay attached

}  // namespace

Pool::Free& Pool::find_free(uint32_t queue) {
  auto& slot = free_[queue];
  if (slot == nullptr) {
    slot = std::make_unique<Free>();
  }
  last_free_ = slot.get();
  last_queue_ = queue;
  return *slot;
}

void Pool::count_released(Block& block) noexcept {
  block.allocated = false;
  const bool is_large = block.segment->is_large;
  allocation_.decrease(is_large, 1);
  allocated_bytes_.decrease(is_large, static_cast<int64_t>(block.charged));
  requested_bytes_.decrease(is_large, static_cast<int64_t>(block.requested));
}

void Pool::count_inactive(Block& block) noexcept {
  block.active = false;
  const bool is_large = block.segment->is_large;
  active_.decrease(is_large, 1);
  active_bytes_.decrease(is_large, static_cast<int64_t>(block.charged));
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
  Block* block = nbytes < kSmallLimit ? take_small(nbytes, queue)
                                      : take_large(rounded_size(nbytes), queue);
  if (block == nullptr) {
    return nullptr;
  }
  block->in_use = true;
  block->requested = nbytes;
  ++block->segment->num_in_use;
  if (counted) {
    promote(block);
  }
  return block;
}

Block* Pool::allocate_again(size_t nbytes, uint32_t queue, bool counted) {
  ++num_alloc_retries_;
  return allocate(nbytes, queue, counted);
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
  block->charged = size;
  segment->cut += size;
  segment->small_blocks.push_back(block);
  return block;
}

Block* Pool::take_large(size_t rounded, uint32_t queue) {
  const int64_t max_split = config().max_split_size;
  const size_t exact = (rounded + kHugePage - 1) / kHugePage * kHugePage;
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
    remove_free(block);
  } else {
    const size_t size = rounded < kOwnSegment ? kLargeSegment : exact;
    auto* segment = add_segment(size, queue, /*is_large=*/true);
    if (segment == nullptr && exact < size) {
      // The last megabytes of the device.
      segment = add_segment(exact, queue, /*is_large=*/true);
    }
    if (segment == nullptr) {
      return nullptr;
    }
    block = segment->first;
  }
  split(block, rounded);
  block->charged = rounded;
  return block;
}

void Pool::split(Block* block, size_t size) {
  const size_t aligned = (size + kGranule - 1) / kGranule * kGranule;
  if (block->size - aligned < kSmallestSplit) {
    return;
  }
  auto* rest =
      new_block(block->segment, block->data + aligned, block->size - aligned);
  block->size = aligned;
  rest->before = block;
  rest->after = block->after;
  if (rest->after != nullptr) {
    rest->after->before = rest;
  }
  block->after = rest;
  add_free(rest);
}

// A free block of a large segment; a piece of one is an inactive split. It
// stays what it is while it is free: a free neighbour would have been joined.
void Pool::add_free(Block* block) {
  free_of(block->queue).large.insert(block);
  if (block->before != nullptr || block->after != nullptr) {
    inactive_split_.increase(/*is_large=*/true, 1);
    inactive_split_bytes_.increase(true, static_cast<int64_t>(block->size));
  }
}

void Pool::remove_free(Block* block) {
  free_of(block->queue).large.erase(block);
  if (block->before != nullptr || block->after != nullptr) {
    inactive_split_.decrease(/*is_large=*/true, 1);
    inactive_split_bytes_.decrease(true, static_cast<int64_t>(block->size));
  }
}

void Pool::release(Block* block) {
  if (block->allocated) {
    note(TraceAction::free_requested, *block);
    count_released(*block);
  }
  if (!block->uses.empty()) [[unlikely]] {
    std::erase_if(block->uses, [](Use& use) {
      use.ticket = use.queue->submitted();
      return use.queue->completed() >= use.ticket;
    });
    if (!block->uses.empty()) {
      waiting_.push_back(block);
      return;
    }
  }
  make_free(block);
}

void Pool::make_free(Block* block) {
  if (block->active) {
    note(TraceAction::free_completed, *block);
    count_inactive(*block);
  }
  block->in_use = false;
  block->context.reset();
  auto* segment = block->segment;
  --segment->num_in_use;
  segment->freed_at = ++num_freed_;
  auto& free = free_of(block->queue);
  if (!segment->is_large) {
    block->next_free = free.small[block->size_class];
    free.small[block->size_class] = block;
    return;
  }
  if (block->before != nullptr && !block->before->in_use) {
    remove_free(block->before);
    block = join(block->before, block);
  }
  if (block->after != nullptr && !block->after->in_use) {
    remove_free(block->after);
    block = join(block, block->after);
  }
  add_free(block);
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
  auto* user = &queue_by_id(device_, queue);
  for (const auto& use : block->uses) {
    if (use.queue == user) {
      return;
    }
  }
  block->uses.push_back({user, 0});
}

void Pool::reclaim_waiting() {
  std::erase_if(waiting_, [&](Block* block) {
    for (const auto& use : block->uses) {
      if (use.queue->completed() < use.ticket) {
        return false;
      }
    }
    block->uses.clear();
    make_free(block);
    return true;
  });
}

}  // namespace neuron::runtime

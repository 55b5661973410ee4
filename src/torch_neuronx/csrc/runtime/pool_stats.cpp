// What a pool counts and tells.
#include <chrono>

#include "runtime/pool.h"

namespace neuron::runtime {

void Pool::promote(Block* block) noexcept {
  block->allocated = true;
  block->active = true;
  const bool is_large = block->segment->is_large;
  const auto charged = static_cast<int64_t>(block->charged);
  allocation_.increase(is_large, 1);
  active_.increase(is_large, 1);
  allocated_bytes_.increase(is_large, charged);
  active_bytes_.increase(is_large, charged);
  requested_bytes_.increase(is_large, static_cast<int64_t>(block->requested));
  note(TraceAction::alloc, *block);
}

bool Pool::is_tracing() {
  auto& settings = trace_settings;
  if (!settings.enabled.load(std::memory_order_relaxed)) [[likely]] {
    return false;
  }
  if (const auto newest = settings.generation.load();
      trace_generation_ != newest) {
    trace_generation_ = newest;
    trace_.clear();
  }
  return settings.max_entries.load() > 0;
}

void Pool::note(TraceAction action, Block& block) {
  if (!is_tracing()) [[likely]] {
    return;
  }
  note(
      action, reinterpret_cast<size_t>(block.data), block.charged, block.queue);
  if (action == TraceAction::alloc) {
    block.context = context;
  }
}

void Pool::note(
    TraceAction action, size_t address, size_t size, uint32_t queue) {
  if (!is_tracing()) [[likely]] {
    return;
  }
  const auto time = std::chrono::duration_cast<std::chrono::microseconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count();
  trace_.push_back({action, address, size, queue, time, context});
  while (trace_.size() > trace_settings.max_entries.load()) {
    trace_.pop_front();
  }
}

MemoryStats Pool::stats() const {
  MemoryStats stats;
  stats.allocation = allocation_.stats();
  stats.segment = segment_.stats();
  stats.active = active_.stats();
  stats.allocated_bytes = allocated_bytes_.stats();
  stats.reserved_bytes = reserved_bytes_.stats();
  stats.active_bytes = active_bytes_.stats();
  stats.requested_bytes = requested_bytes_.stats();
  stats.inactive_split = inactive_split_.stats();
  stats.inactive_split_bytes = inactive_split_bytes_.stats();
  stats.num_alloc_retries = num_alloc_retries_;
  stats.num_ooms = num_ooms_;
  stats.num_device_alloc = segment_.stats()[0].allocated;
  stats.num_device_free = segment_.stats()[0].freed;
  return stats;
}

void Pool::reset_peak() {
  for (auto* counter : counters()) {
    counter->reset_peak();
  }
}

void Pool::reset_accumulated() {
  for (auto* counter : counters()) {
    counter->reset_accumulated();
  }
  num_alloc_retries_ = 0;
  num_ooms_ = 0;
}

std::vector<SegmentInfo> Pool::snapshot() const {
  std::vector<SegmentInfo> infos;
  for (const auto& [base, segment] : segments_) {
    SegmentInfo info{};
    info.device = device_;
    info.address = base;
    info.total_size = segment->size;
    info.queue = segment->queue;
    info.is_large = segment->is_large;
    auto add = [&](const Block& block) {
      info.blocks.push_back(
          {block.size,
           block.requested,
           block.allocated,
           block.active,
           block.context});
      if (block.active) {
        info.active_size += block.charged;
      }
      if (block.allocated) {
        info.allocated_size += block.charged;
        info.requested_size += block.requested;
      }
    };
    for (const auto* block = segment->first; block; block = block->after) {
      add(*block);
    }
    for (const auto* block : segment->small_blocks) {
      add(*block);
    }
    if (!segment->is_large && segment->cut < segment->size) {
      info.blocks.push_back(
          {segment->size - segment->cut, 0, false, false, nullptr});
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

std::vector<TraceEntry> Pool::trace() {
  if (trace_generation_ != trace_settings.generation.load()) {
    trace_.clear();
  }
  return {trace_.begin(), trace_.end()};
}

}  // namespace neuron::runtime

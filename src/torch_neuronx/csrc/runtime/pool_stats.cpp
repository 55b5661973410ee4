// What a pool counts and tells.
#include <chrono>

#include "runtime/pool.h"

namespace neuron::runtime {

TraceSettings& trace_settings() {
  static auto* leaked = new TraceSettings();
  return *leaked;
}

namespace {

// The five statistics of blocks, of one pool.
template <class F>
void of_allocated(MemoryStats& stats, const Block& block, size_t pool, F f) {
  f(stats.allocation[pool], 1);
  f(stats.allocated_bytes[pool], static_cast<int64_t>(block.charged));
  f(stats.requested_bytes[pool], static_cast<int64_t>(block.requested));
}

template <class F>
void of_active(MemoryStats& stats, const Block& block, size_t pool, F f) {
  f(stats.active[pool], 1);
  f(stats.active_bytes[pool], static_cast<int64_t>(block.charged));
}

size_t pool_of(const Block& block) { return block.segment->is_large ? 2 : 1; }

constexpr auto kUp = [](Stat& stat, int64_t by) { stat.increase(by); };
constexpr auto kDown = [](Stat& stat, int64_t by) { stat.decrease(by); };

}  // namespace

void Pool::promote(Block* block) noexcept {
  block->allocated = true;
  block->active = true;
  for (const size_t pool : {size_t{0}, pool_of(*block)}) {
    of_allocated(stats_, *block, pool, kUp);
    of_active(stats_, *block, pool, kUp);
  }
  note(TraceAction::alloc, *block);
}

void Pool::count_released(Block& block) noexcept {
  block.allocated = false;
  for (const size_t pool : {size_t{0}, pool_of(block)}) {
    of_allocated(stats_, block, pool, kDown);
  }
}

void Pool::count_inactive(Block& block) noexcept {
  block.active = false;
  for (const size_t pool : {size_t{0}, pool_of(block)}) {
    of_active(stats_, block, pool, kDown);
  }
}

bool Pool::is_tracing() {
  auto& settings = trace_settings();
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
  while (trace_.size() > trace_settings().max_entries.load()) {
    trace_.pop_front();
  }
}

MemoryStats Pool::stats() const {
  auto stats = stats_;
  // Free pieces of split segments are counted when asked for.
  for (const auto& [base, segment] : segments_) {
    if (!segment->is_large || segment->num_in_use == 0) {
      continue;
    }
    for (const auto* block = segment->first; block; block = block->after) {
      if (!block->in_use) {
        for (const size_t pool : {size_t{0}, size_t{2}}) {
          stats.inactive_split[pool].increase(1);
          stats.inactive_split_bytes[pool].increase(
              static_cast<int64_t>(block->size));
        }
      }
    }
  }
  return stats;
}

namespace {

template <class F>
void for_each_stat(MemoryStats& stats, F&& change) {
  for (auto* each :
       {&stats.allocation,
        &stats.segment,
        &stats.active,
        &stats.inactive_split,
        &stats.allocated_bytes,
        &stats.reserved_bytes,
        &stats.active_bytes,
        &stats.inactive_split_bytes,
        &stats.requested_bytes}) {
    for (auto& stat : *each) {
      change(stat);
    }
  }
}

}  // namespace

void Pool::reset_peak() {
  for_each_stat(stats_, [](Stat& stat) { stat.peak = stat.current; });
}

void Pool::reset_accumulated() {
  for_each_stat(stats_, [](Stat& stat) { stat.allocated = stat.freed = 0; });
  stats_.num_alloc_retries = 0;
  stats_.num_ooms = 0;
  stats_.num_device_alloc = 0;
  stats_.num_device_free = 0;
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
  if (trace_generation_ != trace_settings().generation.load()) {
    trace_.clear();
  }
  return {trace_.begin(), trace_.end()};
}

}  // namespace neuron::runtime

#include "runtime/memory.h"

#include <array>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>

#include "runtime/pool.h"

namespace neuron::runtime {
namespace {

constexpr size_t kMaxDevices = 128;
std::array<std::atomic<Pool*>, kMaxDevices> pools{};
std::mutex creation;
std::atomic<void (*)(const OutOfMemory::Facts&)> out_of_memory_hook{nullptr};

// Leaked: tensors outlive every static destructor.
Pool& make_pool(int device) {
  device_spec(device);
  std::lock_guard<std::mutex> lock(creation);
  auto& slot = pools[static_cast<size_t>(device)];
  if (slot.load() == nullptr) {
    slot.store(new Pool(device), std::memory_order_release);
  }
  return *slot.load();
}

Pool& pool_of(int device) {
  if (device >= 0 && static_cast<size_t>(device) < kMaxDevices) [[likely]] {
    auto* pool =
        pools[static_cast<size_t>(device)].load(std::memory_order_acquire);
    if (pool != nullptr) [[likely]] {
      return *pool;
    }
  }
  return make_pool(device);
}

// What the trace wants to know about the caller, before any lock.
std::shared_ptr<void> gather_context() noexcept {
  auto* gather = trace_settings.context.load();
  try {
    return gather != nullptr ? gather() : nullptr;
  } catch (...) {
    return nullptr;  // a trace must not make a release fail
  }
}

// The pool under its lock, with the context of the events to come.
class Locked {
 public:
  explicit Locked(Pool& pool) : pool_(pool) {
    if (trace_settings.enabled.load(std::memory_order_relaxed)) [[unlikely]] {
      auto context = gather_context();
      pool.mutex.lock();
      pool.context = std::move(context);
    } else {
      pool.mutex.lock();
    }
  }
  ~Locked() {
    if (pool_.context != nullptr) [[unlikely]] {
      pool_.context.reset();
    }
    pool_.mutex.unlock();
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  Pool& pool_;
};

Allocation allocate_from(
    int device, size_t nbytes, uint32_t queue, bool counted) {
  if (nbytes == 0) {
    return {nullptr, nullptr};
  }
  check_fork();
  mark_used();
  auto& pool = pool_of(device);
  {
    const Locked lock(pool);
    if (auto* block = pool.allocate(nbytes, queue, counted)) [[likely]] {
      return {block->data, block};
    }
  }
  // Queued work may still use blocks that are free already, and its tasks may
  // free more: wait for it without the lock.
  pool.empty_cache();
  OutOfMemory::Facts facts{};
  {
    const Locked lock(pool);
    if (auto* block = pool.allocate_again(nbytes, queue, counted)) {
      return {block->data, block};
    }
    facts = pool.note_out_of_memory(nbytes);
  }
  if (auto* hook = out_of_memory_hook.load()) {
    hook(facts);
  }
  throw OutOfMemory(facts);
}

}  // namespace

Allocation allocate(int device, size_t nbytes, uint32_t queue) {
  return allocate_from(device, nbytes, queue, /*counted=*/true);
}

Allocation allocate_scratch(int device, size_t nbytes, uint32_t queue) {
  return allocate_from(device, nbytes, queue, /*counted=*/false);
}

void set_out_of_memory_hook(void (*hook)(const OutOfMemory::Facts&)) {
  out_of_memory_hook = hook;
}

void promote(Block* block) noexcept {
  auto& pool = pool_of(block->segment->device);
  const Locked lock(pool);
  if (!block->allocated) {
    pool.promote(block);
  }
}

void release(Block* block) noexcept {
  // In a forked child the lock may be held for ever; its memory goes with it.
  if (block == nullptr || in_bad_fork()) {
    return;
  }
  auto& pool = pool_of(block->segment->device);
  const Locked lock(pool);
  pool.release(block);
}

void record_use(Block* block, uint32_t queue) {
  check_fork();
  auto& pool = pool_of(block->segment->device);
  std::lock_guard<std::mutex> lock(pool.mutex);
  pool.record_use(block, queue);
}

size_t block_size(const Block* block) { return block->charged; }

int block_device(const Block* block) { return block->segment->device; }

Block* find_block(int device, const void* data) {
  auto& pool = pool_of(device);
  std::lock_guard<std::mutex> lock(pool.mutex);
  return pool.find(data);
}

// In a bad child locks may be held for ever: there is nothing to tell.
void empty_cache(int device) {
  if (!in_bad_fork()) {
    pool_of(device).empty_cache();
  }
}

void set_memory_fraction(int device, double fraction) {
  if (!(fraction > 0.0 && fraction <= 1.0)) {
    throw std::invalid_argument(
        "The memory fraction must be in (0, 1], got " +
        std::to_string(fraction) + ".");
  }
  check_fork();
  auto& pool = pool_of(device);
  std::lock_guard<std::mutex> lock(pool.mutex);
  pool.fraction = fraction;
}

double memory_fraction(int device) {
  check_fork();
  auto& pool = pool_of(device);
  std::lock_guard<std::mutex> lock(pool.mutex);
  return pool.fraction;
}

std::pair<int64_t, int64_t> memory_info(int device) {
  check_fork();
  const auto total = device_spec(device).memory_capacity;
  auto& pool = pool_of(device);
  std::lock_guard<std::mutex> lock(pool.mutex);
  return {total - pool.reserved(), total};
}

MemoryStats memory_stats(int device) {
  if (in_bad_fork()) {
    return {};
  }
  auto& pool = pool_of(device);
  std::lock_guard<std::mutex> lock(pool.mutex);
  return pool.stats();
}

void reset_peak_memory_stats(int device) {
  check_fork();
  auto& pool = pool_of(device);
  std::lock_guard<std::mutex> lock(pool.mutex);
  pool.reset_peak();
}

void reset_accumulated_memory_stats(int device) {
  check_fork();
  auto& pool = pool_of(device);
  std::lock_guard<std::mutex> lock(pool.mutex);
  pool.reset_accumulated();
}

std::vector<SegmentInfo> memory_snapshot(int device) {
  if (in_bad_fork()) {
    return {};
  }
  auto& pool = pool_of(device);
  std::lock_guard<std::mutex> lock(pool.mutex);
  return pool.snapshot();
}

void start_memory_trace(
    size_t max_entries, std::shared_ptr<void> (*context)()) {
  auto& settings = trace_settings;
  settings.max_entries = max_entries;
  settings.context = context;
  ++settings.generation;
  settings.enabled = true;
}

void stop_memory_trace() { trace_settings.enabled = false; }

size_t memory_trace_length(int device) {
  if (in_bad_fork()) {
    return {};
  }
  auto& pool = pool_of(device);
  std::lock_guard<std::mutex> lock(pool.mutex);
  return pool.trace_length();
}

std::vector<TraceEntry> memory_trace(int device) {
  if (in_bad_fork()) {
    return {};
  }
  auto& pool = pool_of(device);
  std::lock_guard<std::mutex> lock(pool.mutex);
  return pool.trace();
}

}  // namespace neuron::runtime

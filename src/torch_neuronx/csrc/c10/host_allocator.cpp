#include "c10/host_allocator.h"

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/alignment.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "c10/device.h"

namespace neuron {
namespace {

constexpr size_t kPage = 4096;

struct Pinned {
  void* data;
  size_t nbytes;
  // Work that may still read it when its owner lets go: (queue, ticket).
  std::vector<std::pair<runtime::Queue*, uint64_t>> readers;
};

class PinnedAllocator final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t nbytes) override {
    if (nbytes == 0) {
      return {nullptr, c10::Device(c10::DeviceType::CPU)};
    }
    const size_t rounded = (nbytes + kPage - 1) / kPage * kPage;
    std::lock_guard<std::mutex> lock(mutex_);
    reclaim();
    Pinned* block = take_cached(rounded);
    if (block == nullptr) {
      void* data = std::aligned_alloc(kPage, rounded);
      TORCH_CHECK_WITH(
          OutOfMemoryError,
          data != nullptr,
          "Could not allocate ",
          rounded,
          " bytes of pinned host memory. Pin less at a time.");
      block = new Pinned{data, rounded, {}};
      reserved_ += static_cast<int64_t>(rounded);
      ++num_allocations_;
    }
    live_[reinterpret_cast<uintptr_t>(block->data)] = block;
    allocated_ += static_cast<int64_t>(rounded);
    peak_ = std::max(peak_, allocated_);
    return {block->data, block, &deleter, c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &deleter; }

  void copy_data(
      void* dest, const void* src, std::size_t count) const override {
    default_copy_data(dest, src, count);
  }

  bool record_event(void* data, void*, c10::Stream stream) override {
    auto& queue = queue_of(stream);
    std::lock_guard<std::mutex> lock(mutex_);
    auto* block = find(data);
    if (block == nullptr) {
      return false;
    }
    block->readers.emplace_back(&queue, queue.submitted());
    return true;
  }

  void empty_cache() override {
    std::lock_guard<std::mutex> lock(mutex_);
    reclaim();
    for (auto& [nbytes, block] : cached_) {
      reserved_ -= static_cast<int64_t>(block->nbytes);
      std::free(block->data);
      delete block;
    }
    cached_.clear();
  }

  at::HostStats get_stats() override {
    std::lock_guard<std::mutex> lock(mutex_);
    at::HostStats stats;
    stats.allocated_bytes.current = allocated_;
    stats.allocated_bytes.peak = peak_;
    stats.num_host_alloc = num_allocations_;
    return stats;
  }

  void reset_accumulated_stats() override {
    std::lock_guard<std::mutex> lock(mutex_);
    num_allocations_ = 0;
  }

  void reset_peak_stats() override {
    std::lock_guard<std::mutex> lock(mutex_);
    peak_ = allocated_;
  }

  bool owns(const void* data) {
    std::lock_guard<std::mutex> lock(mutex_);
    return find(data) != nullptr;
  }

 private:
  static void deleter(void* context);

  void give_back(Pinned* block) {
    std::lock_guard<std::mutex> lock(mutex_);
    live_.erase(reinterpret_cast<uintptr_t>(block->data));
    allocated_ -= static_cast<int64_t>(block->nbytes);
    waiting_.push_back(block);
    reclaim();
  }

  // Blocks whose readers have passed become free for reuse.
  void reclaim() {
    std::erase_if(waiting_, [this](Pinned* block) {
      for (const auto& [queue, ticket] : block->readers) {
        if (queue->completed() < ticket) {
          return false;
        }
      }
      block->readers.clear();
      cached_.emplace(block->nbytes, block);
      return true;
    });
  }

  Pinned* take_cached(size_t nbytes) {
    const auto found = cached_.lower_bound(nbytes);
    if (found == cached_.end() || found->first > 2 * nbytes) {
      return nullptr;
    }
    auto* block = found->second;
    cached_.erase(found);
    return block;
  }

  Pinned* find(const void* data) {
    const auto address = reinterpret_cast<uintptr_t>(data);
    auto next = live_.upper_bound(address);
    if (next == live_.begin()) {
      return nullptr;
    }
    auto* block = std::prev(next)->second;
    return address < std::prev(next)->first + block->nbytes ? block : nullptr;
  }

  std::mutex mutex_;
  std::map<uintptr_t, Pinned*> live_;
  std::multimap<size_t, Pinned*> cached_;
  std::vector<Pinned*> waiting_;
  int64_t allocated_ = 0;
  int64_t peak_ = 0;
  int64_t reserved_ = 0;
  int64_t num_allocations_ = 0;
};

PinnedAllocator& allocator() {
  static auto* leaked = new PinnedAllocator();
  return *leaked;
}

void PinnedAllocator::deleter(void* context) {
  if (context != nullptr) {
    allocator().give_back(static_cast<Pinned*>(context));
  }
}

const bool registered = [] {
  at::setHostAllocator(kNeuron, &allocator());
  return true;
}();

}  // namespace

c10::Allocator* pinned_allocator() { return &allocator(); }

bool is_pinned(const void* data) { return allocator().owns(data); }

}  // namespace neuron

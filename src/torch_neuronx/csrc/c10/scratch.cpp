#include "c10/scratch.h"

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/memory.h"

namespace neuron::scratch {
namespace {

struct Entry {
  void* data;
  runtime::Block* block;
};

// Trivially destroyed, so that frees during thread exit still work.
std::vector<Entry>& list() {
  static thread_local auto* entries = new std::vector<Entry>();
  return *entries;
}

struct Shared {
  std::mutex mutex;
  std::unordered_map<void*, runtime::Block*> blocks;
  // Freed by another thread while the filing thread's scope was open.
  std::unordered_set<void*> freed_early;
  std::atomic<size_t> size{0};
};

Shared& shared() {
  static auto* leaked = new Shared();
  return *leaked;
}

runtime::Block* take_shared(void* data) {
  auto& all = shared();
  if (all.size.load(std::memory_order_acquire) == 0) {
    return nullptr;
  }
  std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.blocks.find(data);
  if (found == all.blocks.end()) {
    return nullptr;
  }
  auto* block = found->second;
  all.blocks.erase(found);
  all.size.store(all.blocks.size(), std::memory_order_release);
  return block;
}

}  // namespace

void file(void* data, runtime::Block* block) {
  list().push_back({data, block});
}

runtime::Block* take(void* data) noexcept {
  auto& entries = list();
  for (size_t i = entries.size(); i-- > 0;) {
    if (entries[i].data == data) {
      auto* block = entries[i].block;
      entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(i));
      return block;
    }
  }
  return take_shared(data);
}

void release(void* data) noexcept {
  if (auto* block = take(data)) {
    runtime::release(block);
    return;
  }
  auto& all = shared();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.freed_early.insert(data);
}

size_t mark() noexcept { return list().size(); }

void leave(size_t mark) noexcept {
  auto& entries = list();
  if (entries.size() <= mark) {
    return;
  }
  auto& all = shared();
  std::lock_guard<std::mutex> lock(all.mutex);
  while (entries.size() > mark) {
    const auto entry = entries.back();
    entries.pop_back();
    if (all.freed_early.erase(entry.data) > 0) {
      runtime::release(entry.block);
    } else {
      all.blocks[entry.data] = entry.block;
    }
  }
  all.size.store(all.blocks.size(), std::memory_order_release);
}

}  // namespace neuron::scratch

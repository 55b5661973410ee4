#include "c10/allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include "c10/scratch.h"
#include "runtime/memory.h"

namespace neuron {
namespace {

// The device whose scope is open in this thread, -1 for none.
thread_local int scope_device = -1;

void report(void* data, int64_t nbytes, int device) {
  auto* info =
      c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE);
  if (C10_UNLIKELY(info != nullptr)) {
    const auto stats = runtime::memory_stats(device);
    c10::reportMemoryUsageToProfiler(
        data,
        nbytes,
        stats.allocated_bytes[0].current,
        stats.reserved_bytes[0].current,
        device_at(device));
  }
}

std::atomic<void (*)()> release_hook{nullptr};

void release_block(void* context) {
  auto* block = static_cast<runtime::Block*>(context);
  if (block == nullptr) {
    return;
  }
  if (C10_UNLIKELY(
          c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE) !=
          nullptr)) {
    report(
        nullptr,
        -static_cast<int64_t>(runtime::block_size(block)),
        runtime::block_device(block));
  }
  runtime::release(block);
  if (auto* hook = release_hook.load(std::memory_order_relaxed)) [[unlikely]] {
    hook();
  }
}

c10::CachingAllocator::StatArray to_c10(const runtime::StatArray& from) {
  c10::CachingAllocator::StatArray to;
  for (size_t pool = 0; pool < to.size() && pool < from.size(); ++pool) {
    to[pool].current = from[pool].current;
    to[pool].peak = from[pool].peak;
    to[pool].allocated = from[pool].allocated;
    to[pool].freed = from[pool].freed;
  }
  return to;
}

class DeviceAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t nbytes) override {
    return allocate_on(runtime::current_device(), nbytes);
  }

  void copy_data(
      void* dest, const void* src, std::size_t count) const override {
    if (!runtime::is_dry()) {
      default_copy_data(dest, src, count);
    }
  }

  bool initialized() override { return runtime::configured(); }

  void emptyCache(c10::MempoolId_t) override {
    with_torch_errors([] {
      for (int device = 0; device < runtime::device_count(); ++device) {
        runtime::empty_cache(device);
      }
    });
  }

  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    if (data.get_deleter() == &release_block && data.get_context()) {
      with_torch_errors([&] {
        runtime::record_use(
            static_cast<runtime::Block*>(data.get_context()),
            static_cast<uint32_t>(stream.id()));
      });
    }
  }

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(
      c10::DeviceIndex index) override {
    const auto from = runtime::memory_stats(checked_index(device_at(index)));
    c10::CachingDeviceAllocator::DeviceStats to;
    to.allocation = to_c10(from.allocation);
    to.segment = to_c10(from.segment);
    to.active = to_c10(from.active);
    to.inactive_split = to_c10(from.inactive_split);
    to.allocated_bytes = to_c10(from.allocated_bytes);
    to.reserved_bytes = to_c10(from.reserved_bytes);
    to.active_bytes = to_c10(from.active_bytes);
    to.inactive_split_bytes = to_c10(from.inactive_split_bytes);
    to.requested_bytes = to_c10(from.requested_bytes);
    to.num_alloc_retries = from.num_alloc_retries;
    to.num_ooms = from.num_ooms;
    to.num_device_alloc = from.num_device_alloc;
    to.num_device_free = from.num_device_free;
    return to;
  }

  void resetAccumulatedStats(c10::DeviceIndex index) override {
    runtime::reset_accumulated_memory_stats(checked_index(device_at(index)));
  }

  void resetPeakStats(c10::DeviceIndex index) override {
    runtime::reset_peak_memory_stats(checked_index(device_at(index)));
  }

  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    const auto info = runtime::memory_info(checked_index(device_at(index)));
    return {info.first, info.second};
  }
};

c10::Allocator* plain_host_allocator = nullptr;

void release_raw(void* data) {
  if (auto* block = scratch::take(data)) {
    runtime::release(block);
  } else {
    plain_host_allocator->raw_deleter()(data);
  }
}

class ScopedHostAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t nbytes) override {
    const int device = scope_device;
    if (C10_LIKELY(device < 0)) {
      return plain_host_allocator->allocate(nbytes);
    }
    return with_torch_errors([&] {
      const auto memory = runtime::allocate_scratch(
          device, nbytes, runtime::current_queue(device).id());
      if (memory.block != nullptr) {
        scratch::file(memory.data, memory.block);
      }
      return c10::DataPtr(
          memory.data,
          memory.data,
          &scratch::release,
          c10::Device(c10::DeviceType::CPU));
    });
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release_raw; }

  void copy_data(
      void* dest, const void* src, std::size_t count) const override {
    default_copy_data(dest, src, count);
  }
};

// Leaked: tensors may outlive every static destructor.
DeviceAllocator& the_device_allocator() {
  static auto* allocator = new DeviceAllocator();
  return *allocator;
}

ScopedHostAllocator& the_host_allocator() {
  static auto* allocator = [] {
    plain_host_allocator = c10::GetCPUAllocator();
    return new ScopedHostAllocator();
  }();
  return *allocator;
}

const bool registered = [] {
  c10::SetAllocator(kNeuron, &the_device_allocator());
  constexpr uint8_t above_default = 100;
  c10::SetCPUAllocator(&the_host_allocator(), above_default);
  return true;
}();

}  // namespace

c10::Allocator* device_allocator() { return &the_device_allocator(); }

c10::Allocator* scoped_host_allocator() { return &the_host_allocator(); }

void set_release_hook(void (*hook)()) { release_hook = hook; }

c10::DataPtr allocate_on(int device, size_t nbytes) {
  return with_torch_errors([&] {
    const auto memory =
        runtime::allocate(device, nbytes, runtime::current_queue(device).id());
    report(memory.data, static_cast<int64_t>(nbytes), device);
    return c10::DataPtr(
        memory.data, memory.block, &release_block, device_at(device));
  });
}

int host_scope_device() noexcept { return scope_device; }

HostScope::HostScope(int device) noexcept : previous_(scope_device) {
  scope_device = device;
}

HostScope::~HostScope() { scope_device = previous_; }

c10::DataPtr adopt(c10::DataPtr host, size_t nbytes, int device) {
  void* data = host.get();
  if (host.get_deleter() == &scratch::release) {
    auto* block = data != nullptr ? scratch::take(data) : nullptr;
    if (block != nullptr) {
      runtime::promote(block);
      report(data, static_cast<int64_t>(nbytes), device);
    }
    host.release_context();
    return c10::DataPtr(data, block, &release_block, device_at(device));
  }
  // Memory that the kernel got elsewhere stays with whoever owns it.
  const auto deleter = host.get_deleter();
  return c10::DataPtr(data, host.release_context(), deleter, device_at(device));
}

}  // namespace neuron

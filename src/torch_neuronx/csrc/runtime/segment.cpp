#include "runtime/segment.h"

#include <sys/mman.h>

#include <bit>
#include <cstdio>

namespace neuron::runtime {
namespace {

constexpr size_t kLinearLimit =
    8 * kKiB;                  // multiples of the granule up to here
constexpr size_t kSteps = 32;  // classes per doubling above

// `multiple` is a power of two.
constexpr size_t round_up(size_t value, size_t multiple) {
  return (value + multiple - 1) & ~(multiple - 1);
}

// The distance between classes around `nbytes`.
size_t step_at(size_t nbytes) noexcept {
  return std::bit_floor(nbytes - 1) / kSteps;
}

}  // namespace

size_t size_class(size_t nbytes) noexcept {
  if (nbytes <= kLinearLimit) {
    return (nbytes + kGranule - 1) / kGranule - 1;
  }
  const size_t floor =
      std::bit_floor(nbytes - 1);  // nbytes in (floor, 2 floor]
  const size_t doubling =
      static_cast<size_t>(std::bit_width(floor) - std::bit_width(kLinearLimit));
  const auto step_bits =
      static_cast<size_t>(std::bit_width(floor) - std::bit_width(kSteps));
  const size_t step = size_t{1} << step_bits;
  return kLinearLimit / kGranule + doubling * kSteps +
         ((nbytes - floor + step - 1) >> step_bits) - 1;
}

size_t class_size(size_t size_class) noexcept {
  constexpr size_t linear = kLinearLimit / kGranule;
  if (size_class < linear) {
    return (size_class + 1) * kGranule;
  }
  const size_t doubling = (size_class - linear) / kSteps;
  const size_t step = (size_class - linear) % kSteps;
  const size_t floor = kLinearLimit << doubling;
  return floor + (step + 1) * (floor / kSteps);
}

size_t rounded_size(size_t nbytes) noexcept {
  if (nbytes <= kLinearLimit) {
    return round_up(nbytes, kGranule);
  }
  if (nbytes < kOwnSegment) {
    return round_up(nbytes, step_at(nbytes));
  }
  return nbytes;
}

size_t available_host_memory() noexcept {
  constexpr size_t unknown = SIZE_MAX;
  std::FILE* file = std::fopen("/proc/meminfo", "re");
  if (file == nullptr) {
    return unknown;
  }
  char line[128];
  unsigned long long kibibytes = 0;
  bool found = false;
  while (!found && std::fgets(line, sizeof(line), file) != nullptr) {
    found = std::sscanf(line, "MemAvailable: %llu kB", &kibibytes) == 1;
  }
  std::fclose(file);
  return found ? static_cast<size_t>(kibibytes) * kKiB : unknown;
}

char* map_memory(size_t nbytes, MemoryBacking backing) noexcept {
  const bool committed = backing == MemoryBacking::committed;
  // The system grants any amount and kills the process when it is touched.
  if (committed && nbytes > kOwnSegment && nbytes > available_host_memory()) {
    return nullptr;
  }
  const size_t total = nbytes + kHugePage;
  void* mapped = ::mmap(
      nullptr,
      total,
      committed ? PROT_READ | PROT_WRITE : PROT_NONE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
      -1,
      0);
  if (mapped == MAP_FAILED) {
    return nullptr;
  }
  // Trim to a huge-page boundary.
  auto* start = static_cast<char*>(mapped);
  const auto address = reinterpret_cast<uintptr_t>(start);
  auto* base = start + (round_up(address, kHugePage) - address);
  if (base != start) {
    ::munmap(start, static_cast<size_t>(base - start));
  }
  const auto tail = static_cast<size_t>(start + total - (base + nbytes));
  if (tail > 0) {
    ::munmap(base + nbytes, tail);
  }
  if (committed) {
    ::madvise(base, nbytes, MADV_HUGEPAGE);
  }
  return base;
}

void unmap_memory(char* base, size_t nbytes) noexcept {
  ::munmap(base, nbytes);
}

}  // namespace neuron::runtime

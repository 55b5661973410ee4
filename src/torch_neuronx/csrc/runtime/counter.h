// One statistic of a pool of memory, cheap to keep and complete when read.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/memory.h"

namespace neuron::runtime {

// An increase keeps the peaks; a decrease is a single store, because what was
// freed follows from the rest.
class Counter {
 public:
  void increase(bool is_large, int64_t amount) noexcept {
    auto& part = parts_[is_large];
    part.current += amount;
    part.allocated += amount;
    part.peak = std::max(part.peak, part.current);
    peak_ = std::max(peak_, current());
  }
  void decrease(bool is_large, int64_t amount) noexcept {
    parts_[is_large].current -= amount;
  }

  int64_t current() const noexcept {
    return parts_[0].current + parts_[1].current;
  }

  StatArray stats() const noexcept {
    StatArray stats{};
    for (size_t i = 0; i < parts_.size(); ++i) {
      const auto& part = parts_[i];
      stats[i + 1] = {part.current, part.peak, part.allocated, part.freed()};
      stats[0].allocated += part.allocated;
      stats[0].freed += part.freed();
    }
    stats[0].current = current();
    stats[0].peak = peak_;
    return stats;
  }

  void reset_peak() noexcept {
    peak_ = current();
    for (auto& part : parts_) {
      part.peak = part.current;
    }
  }

  void reset_accumulated() noexcept {
    for (auto& part : parts_) {
      part.allocated = 0;
      part.at_reset = part.current;
    }
  }

 private:
  struct Part {
    int64_t current = 0;
    int64_t peak = 0;
    int64_t allocated = 0;  // since the reset
    int64_t at_reset = 0;

    int64_t freed() const noexcept { return at_reset + allocated - current; }
  };

  std::array<Part, 2> parts_;  // small, large
  int64_t peak_ = 0;           // of both together
};

}  // namespace neuron::runtime

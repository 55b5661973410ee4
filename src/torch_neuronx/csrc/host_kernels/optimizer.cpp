#include "host_kernels/optimizer.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "host_kernels/kernel_table.h"

namespace neuron::host_kernels {
namespace {

constexpr int64_t kPart = 16384;

// Pieces of all arrays in order, so that small ones share a thread's turn.
class Parts {
 public:
  template <class Item>
  Parts(const Item* items, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t begin = 0; begin < items[i].count; begin += kPart) {
        parts_.push_back({i, begin, std::min(begin + kPart, items[i].count)});
      }
    }
  }
  // function(part index, array index, begin, end)
  template <class Function>
  void run(Function function) const {
    at::parallel_for(0, size(), 4, [&](int64_t first, int64_t last) {
      for (auto p = first; p < last; ++p) {
        function(p, parts_[p].array, parts_[p].begin, parts_[p].end);
      }
    });
  }
  int64_t size() const { return static_cast<int64_t>(parts_.size()); }
  int64_t array_of(int64_t part) const { return parts_[part].array; }

 private:
  struct Part {
    int64_t array;
    int64_t begin;
    int64_t end;
  };
  std::vector<Part> parts_;
};

AdamConstants constants_of(const OptimizedArray& array, const AdamOptions& o) {
  const double correction1 = 1.0 - std::pow(o.beta1, array.step);
  const double correction2 = 1.0 - std::pow(o.beta2, array.step);
  const auto fp32 = [](double value) { return static_cast<float>(value); };
  return {
      fp32((o.maximize ? -1.0 : 1.0) / o.gradient_scale),
      fp32(o.decoupled_decay ? 1.0 - o.learning_rate * o.weight_decay : 1.0),
      fp32(o.decoupled_decay ? 0.0 : o.weight_decay),
      fp32(1.0 - o.beta1),
      fp32(o.beta2),
      fp32(1.0 - o.beta2),
      fp32(o.learning_rate / correction1),
      fp32(1.0 / std::sqrt(correction2)),
      fp32(o.eps)};
}

}  // namespace

void adam_step(
    const OptimizedArray* arrays, int64_t count, const AdamOptions& options) {
  std::vector<AdamConstants> constants;
  for (int64_t i = 0; i < count; ++i) {
    constants.push_back(constants_of(arrays[i], options));
  }
  Parts(arrays, count).run([&](int64_t, int64_t i, int64_t begin, int64_t end) {
    kernel_table().optimizer.adam(arrays[i], constants[i], begin, end);
  });
}

void sgd_step(
    const OptimizedArray* arrays, int64_t count, const SgdOptions& options) {
  Parts(arrays, count).run([&](int64_t, int64_t i, int64_t begin, int64_t end) {
    kernel_table().optimizer.sgd(arrays[i], options, begin, end);
  });
}

void sums_of_squares(const Array* arrays, int64_t count, double* sums) {
  const Parts parts(arrays, count);
  std::vector<double> of_part(parts.size());
  parts.run([&](int64_t p, int64_t i, int64_t begin, int64_t end) {
    of_part[p] = kernel_table().optimizer.sum_of_squares(arrays[i], begin, end);
  });
  std::fill_n(sums, count, 0.0);
  for (int64_t p = 0; p < parts.size(); ++p) {
    sums[parts.array_of(p)] += of_part[p];
  }
}

void scale_arrays(const Array* arrays, int64_t count, float factor) {
  Parts(arrays, count).run([&](int64_t, int64_t i, int64_t begin, int64_t end) {
    kernel_table().optimizer.scale(arrays[i], factor, begin, end);
  });
}

}  // namespace neuron::host_kernels

// Splitting elementwise work over PyTorch's threads.
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>

namespace neuron::host_kernels {

// ATen's: fewer elements than this are not worth a second thread.
constexpr int64_t kGrain = 32768;

// part(begin, end) on pieces of [0, count), in the caller when it is small.
template <class F>
void in_parts(int64_t count, F&& part) {
  if (count <= kGrain) {
    part(int64_t{0}, count);
  } else {
    at::parallel_for(0, count, kGrain, part);
  }
}

// part(begin, end) on ranges of rows that each have enough elements.
template <class F>
void in_rows(int64_t rows, int64_t columns, F&& part) {
  if (rows * columns <= kGrain || rows == 1) {
    part(int64_t{0}, rows);
  } else {
    at::parallel_for(0, rows, std::max<int64_t>(1, kGrain / columns), part);
  }
}

}  // namespace neuron::host_kernels

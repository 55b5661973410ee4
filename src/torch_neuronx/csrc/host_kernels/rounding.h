// Division and rounding upwards, for sizes of blocks.
#pragma once

#include <cstdint>

namespace neuron::host_kernels {

constexpr int64_t divide_up(int64_t x, int64_t step) {
  return (x + step - 1) / step;
}

constexpr int64_t round_up(int64_t x, int64_t step) {
  return divide_up(x, step) * step;
}

}  // namespace neuron::host_kernels

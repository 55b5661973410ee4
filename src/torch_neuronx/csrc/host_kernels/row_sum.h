// The sum of contiguous fp32 values in the order in which ATen's CPU kernel
// adds them: four vector accumulators, carried over four levels so that the
// error grows with the logarithm of the length.
#pragma once

#include "host_kernels/vector_casts.h"

namespace neuron::host_kernels::NEURON_ISA_NAMESPACE {
namespace {

constexpr int kSumLevels = 4;
constexpr int kSumLanes = 4;  // independent accumulators per level

inline int64_t ceil_log2(int64_t value) {
  int64_t bits = 0;
  while ((int64_t{1} << bits) < value) {
    ++bits;
  }
  return bits;
}

// Adds load(group, lane) over the groups, each lane by itself.
template <class V, class Load>
void cascade(Load&& load, int64_t groups, V (&result)[kSumLanes]) {
  const int64_t power = std::max<int64_t>(4, ceil_log2(groups) / kSumLevels);
  const int64_t step = int64_t{1} << power;
  V sums[kSumLevels][kSumLanes];
  for (auto& level : sums) {
    for (auto& sum : level) {
      sum = V(0);
    }
  }
  int64_t i = 0;
  const auto add_group = [&] {
    for (int lane = 0; lane < kSumLanes; ++lane) {
      sums[0][lane] = sums[0][lane] + load(i, lane);
    }
    ++i;
  };
  while (i + step <= groups) {
    for (int64_t j = 0; j < step; ++j) {
      add_group();
    }
    for (int level = 1; level < kSumLevels; ++level) {
      for (int lane = 0; lane < kSumLanes; ++lane) {
        sums[level][lane] = sums[level][lane] + sums[level - 1][lane];
        sums[level - 1][lane] = V(0);
      }
      if ((i & ((step - 1) << (level * power))) != 0) {
        break;
      }
    }
  }
  while (i < groups) {
    add_group();
  }
  for (int lane = 0; lane < kSumLanes; ++lane) {
    for (int level = 1; level < kSumLevels; ++level) {
      sums[0][lane] = sums[0][lane] + sums[level][lane];
    }
    result[lane] = sums[0][lane];
  }
}

template <class V>
V load_lanes(const float* from) {
  if constexpr (std::is_same_v<V, float>) {
    return *from;
  } else {
    return V::loadu(from);
  }
}

// One vector (or value) per step of `stride` floats, summed to one.
template <class V>
V strided_sum(const float* in, int64_t stride, int64_t count) {
  V lanes[kSumLanes];
  const int64_t groups = count / kSumLanes;
  cascade<V>(
      [&](int64_t group, int lane) {
        return load_lanes<V>(in + (group * kSumLanes + lane) * stride);
      },
      groups,
      lanes);
  for (int64_t rest = groups * kSumLanes; rest < count; ++rest) {
    lanes[0] = lanes[0] + load_lanes<V>(in + rest * stride);
  }
  for (int lane = 1; lane < kSumLanes; ++lane) {
    lanes[0] = lanes[0] + lanes[lane];
  }
  return lanes[0];
}

inline float cascade_sum(const float* in, int64_t count) {
  constexpr int64_t width = F32::size();
  const int64_t vectors = count / width;
  if (vectors == 0) {
    return strided_sum<float>(in, 1, count);
  }
  const F32 sums = strided_sum<F32>(in, width, vectors);
  float total = 0;
  for (int64_t i = vectors * width; i < count; ++i) {
    total += in[i];
  }
  float each[width];
  sums.store(each);
  for (const float part : each) {
    total += part;
  }
  return total;
}

// Sums of columns [begin, end) of rows x columns values.
inline void column_sums(
    float* out,
    const float* in,
    int64_t rows,
    int64_t columns,
    int64_t begin,
    int64_t end) {
  constexpr int64_t width = F32::size();
  int64_t j = begin;
  for (; j + kSumLanes * width <= end; j += kSumLanes * width) {
    F32 lanes[kSumLanes];
    cascade<F32>(
        [&](int64_t row, int lane) {
          return F32::loadu(in + row * columns + j + lane * width);
        },
        rows,
        lanes);
    for (int lane = 0; lane < kSumLanes; ++lane) {
      lanes[lane].store(out + j + lane * width);
    }
  }
  for (; j + width <= end; j += width) {
    strided_sum<F32>(in + j, columns, rows).store(out + j);
  }
  // Too narrow for vectors: four columns at once, each in plain row order.
  for (; columns < width && j + kSumLanes <= end; j += kSumLanes) {
    float lanes[kSumLanes];
    cascade<float>(
        [&](int64_t row, int lane) { return in[row * columns + j + lane]; },
        rows,
        lanes);
    std::copy_n(lanes, kSumLanes, out + j);
  }
  for (; j < end; ++j) {
    out[j] = strided_sum<float>(in + j, columns, rows);
  }
}

}  // namespace
}  // namespace neuron::host_kernels::NEURON_ISA_NAMESPACE

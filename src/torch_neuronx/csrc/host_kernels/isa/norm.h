// Rows of layer norm and RMS norm. A row is read from memory once; the later
// passes find it in the cache.
#pragma once

#include "host_kernels/array_kernels.h"
#include "host_kernels/isa/values.h"

namespace neuron::host_kernels::NEURON_ISA_NAMESPACE {

// Sum of f over a row, in four independent parts.
template <class Function>
inline float sum_over(int64_t width, Function f) {
  F32 parts[4] = {zero(), zero(), zero(), zero()};
  int64_t i = 0;
  for (; i + 4 * kLanes <= width; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int p = 0; p < 4; ++p) {
      parts[p] = parts[p] + f(i + p * kLanes, int64_t{kLanes});
    }
  }
  for_vectors(width - i, [&](int64_t j, int64_t lanes) {
    parts[0] = parts[0] + keep_lanes(f(i + j, lanes), lanes, 0.0f);
  });
  return sum((parts[0] + parts[1]) + (parts[2] + parts[3]));
}

template <class T, class W>
void norm_forward_rows(const NormRows& rows, float eps, T* out) {
  const auto width = rows.norm.width;
  const auto* x = static_cast<const T*>(rows.x);
  const auto* weight = static_cast<const W*>(rows.weight);
  const auto* bias = static_cast<const W*>(rows.bias);
  for (int64_t r = 0; r < rows.norm.rows; ++r, x += width, out += width) {
    float mean = 0.0f;
    if (rows.norm.centered) {
      mean = sum_over(
                 width,
                 [&](int64_t i, int64_t n) { return load_some(x + i, n); }) /
             static_cast<float>(width);
    }
    const auto squares = sum_over(width, [&](int64_t i, int64_t n) {
      const auto d = load_some(x + i, n) - broadcast(mean);
      return d * d;
    });
    const float variance = squares / static_cast<float>(width);
    const float rstd = 1.0f / __builtin_sqrtf(variance + eps);
    for_vectors(width, [&](int64_t i, int64_t n) {
      auto y = (load_some(x + i, n) - broadcast(mean)) * broadcast(rstd);
      if (weight != nullptr) {
        y = y * load_some(weight + i, n);
      }
      if (bias != nullptr) {
        y = y + load_some(bias + i, n);
      }
      store_some(out + i, y, n);
    });
    if (rows.mean != nullptr) {
      rows.mean[r] = mean;
    }
    if (rows.rstd != nullptr) {
      rows.rstd[r] = rstd;
    }
  }
}

template <class T, class W>
void norm_backward_rows(
    const NormRows& rows,
    const T* gradient,
    T* x_gradient,
    float* weight_sums,
    float* bias_sums) {
  const auto width = rows.norm.width;
  const auto* x = static_cast<const T*>(rows.x);
  const auto* weight = static_cast<const W*>(rows.weight);
  for (int64_t r = 0; r < rows.norm.rows; ++r, x += width, gradient += width) {
    const auto mean = broadcast(rows.norm.centered ? rows.mean[r] : 0.0f);
    const auto rstd = broadcast(rows.rstd[r]);
    const auto weighted = [&](int64_t i, int64_t n) {
      const auto g = load_some(gradient + i, n);
      return weight == nullptr ? g : g * load_some(weight + i, n);
    };
    const auto normal = [&](int64_t i, int64_t n) {
      return (load_some(x + i, n) - mean) * rstd;
    };
    if (weight_sums != nullptr || bias_sums != nullptr) {
      for_vectors(width, [&](int64_t i, int64_t n) {
        const auto g = load_some(gradient + i, n);
        if (weight_sums != nullptr) {
          const auto total =
              fma(g, normal(i, n), load_some(weight_sums + i, n));
          store_some(weight_sums + i, total, n);
        }
        if (bias_sums != nullptr) {
          store_some(bias_sums + i, load_some(bias_sums + i, n) + g, n);
        }
      });
    }
    if (x_gradient == nullptr) {
      continue;
    }
    const auto count = static_cast<float>(width);
    const float shared =
        rows.norm.centered ? sum_over(width, weighted) / count : 0.0f;
    const float along = sum_over(
                            width,
                            [&](int64_t i, int64_t n) {
                              return weighted(i, n) * normal(i, n);
                            }) /
                        count;
    for_vectors(width, [&](int64_t i, int64_t n) {
      const auto removed =
          fma(normal(i, n), broadcast(along), broadcast(shared));
      store_some(x_gradient + i, (weighted(i, n) - removed) * rstd, n);
    });
    x_gradient += width;
  }
}

inline void norm_forward(const NormRows& rows, float eps, void* out) {
  with_value_types(
      rows.norm.dtype,
      rows.norm.parameter_dtype,
      [&]<class T, class W>(T*, W*) {
        norm_forward_rows<T, W>(rows, eps, static_cast<T*>(out));
      });
}

inline void norm_backward(
    const NormRows& rows,
    const void* out_gradient,
    void* x_gradient,
    float* weight_sums,
    float* bias_sums) {
  with_value_types(
      rows.norm.dtype,
      rows.norm.parameter_dtype,
      [&]<class T, class W>(T*, W*) {
        norm_backward_rows<T, W>(
            rows,
            static_cast<const T*>(out_gradient),
            static_cast<T*>(x_gradient),
            weight_sums,
            bias_sums);
      });
}

}  // namespace neuron::host_kernels::NEURON_ISA_NAMESPACE

// Rows of softmax, log-softmax and cross-entropy.
#pragma once

#include "host_kernels/isa/exponential.h"
#include "host_kernels/isa/norm.h"

namespace neuron::host_kernels::NEURON_ISA_NAMESPACE {

template <class T>
inline float row_maximum(const T* x, int64_t width) {
  const float lowest = -__builtin_inff();
  F32 high[4] = {
      broadcast(lowest),
      broadcast(lowest),
      broadcast(lowest),
      broadcast(lowest)};
  int64_t i = 0;
  // A NaN may get lost here; it comes back through exp(x - maximum).
  for (; i + 4 * kLanes <= width; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int p = 0; p < 4; ++p) {
      high[p] = max(high[p], load(x + i + p * kLanes));
    }
  }
  for_vectors(width - i, [&](int64_t j, int64_t n) {
    high[0] = max(high[0], keep_lanes(load_some(x + i + j, n), n, lowest));
  });
  return largest(max(max(high[0], high[1]), max(high[2], high[3])));
}

template <class T>
inline float sum_of_exp(const T* x, int64_t width, float maximum) {
  return sum_over(width, [&](int64_t i, int64_t n) {
    return exp(load_some(x + i, n) - broadcast(maximum));
  });
}

// Rows up to this width keep their exponentials on the stack.
constexpr int64_t kKeptWidth = 4096;

template <class T>
void softmax_row(const T* x, int64_t width, T* out) {
  const auto maximum = broadcast(row_maximum(x, width));
  const auto exponential = [&](int64_t i, int64_t n) {
    return exp(load_some(x + i, n) - maximum);
  };
  if (width > kKeptWidth) {
    const auto factor = broadcast(1.0f / sum_over(width, exponential));
    for_vectors(width, [&](int64_t i, int64_t n) {
      store_some(out + i, exponential(i, n) * factor, n);
    });
    return;
  }
  alignas(64) float kept[kKeptWidth + kLanes];
  const float total = sum_over(width, [&](int64_t i, int64_t n) {
    const auto e = exponential(i, n);
    store(kept + i, e);
    return e;
  });
  const auto factor = broadcast(1.0f / total);
  for_vectors(width, [&](int64_t i, int64_t n) {
    store_some(out + i, load(kept + i) * factor, n);
  });
}

template <class T>
void softmax_forward_rows(const Rows& rows, bool log, const T* x, T* out) {
  const auto width = rows.width;
  for (int64_t r = 0; r < rows.rows; ++r, x += width, out += width) {
    if (!log) {
      softmax_row(x, width, out);
      continue;
    }
    const float maximum = row_maximum(x, width);
    const float total = sum_of_exp(x, width, maximum);
    const auto shift = broadcast(maximum + __builtin_logf(total));
    for_vectors(width, [&](int64_t i, int64_t n) {
      store_some(out + i, load_some(x + i, n) - shift, n);
    });
  }
}

template <class T>
void softmax_backward_rows(
    const Rows& rows, bool log, const T* gradient, const T* y, T* out) {
  const auto width = rows.width;
  for (int64_t r = 0; r < rows.rows;
       ++r, gradient += width, y += width, out += width) {
    const auto total = broadcast(sum_over(width, [&](int64_t i, int64_t n) {
      const auto g = load_some(gradient + i, n);
      return log ? g : g * load_some(y + i, n);
    }));
    for_vectors(width, [&](int64_t i, int64_t n) {
      const auto g = load_some(gradient + i, n);
      const auto value = load_some(y + i, n);
      store_some(
          out + i, log ? g - exp(value) * total : (g - total) * value, n);
    });
  }
}

inline void softmax_forward(
    const Rows& rows, bool log, const void* x, void* out) {
  with_value_type(rows.dtype, [&]<class T>(T*) {
    softmax_forward_rows(
        rows, log, static_cast<const T*>(x), static_cast<T*>(out));
  });
}

inline void softmax_backward(
    const Rows& rows,
    bool log,
    const void* out_gradient,
    const void* out,
    void* x_gradient) {
  with_value_type(rows.dtype, [&]<class T>(T*) {
    softmax_backward_rows(
        rows,
        log,
        static_cast<const T*>(out_gradient),
        static_cast<const T*>(out),
        static_cast<T*>(x_gradient));
  });
}

inline void log_sum_exp(
    int64_t width,
    c10::ScalarType dtype,
    const void* x,
    float* result,
    float* plain_sum) {
  with_value_type(dtype, [&]<class T>(T*) {
    const auto* row = static_cast<const T*>(x);
    const float maximum = row_maximum(row, width);
    *result = maximum + __builtin_logf(sum_of_exp(row, width, maximum));
    *plain_sum = sum_over(
        width, [&](int64_t i, int64_t n) { return load_some(row + i, n); });
  });
}

inline void scaled_softmax(
    int64_t width,
    c10::ScalarType dtype,
    const void* x,
    float log_sum_exp,
    float factor,
    float shift,
    void* out) {
  with_value_type(dtype, [&]<class T>(T*) {
    const auto* row = static_cast<const T*>(x);
    auto* to = static_cast<T*>(out);
    for_vectors(width, [&](int64_t i, int64_t n) {
      const auto p = exp(load_some(row + i, n) - broadcast(log_sum_exp));
      store_some(to + i, fma(p, broadcast(factor), broadcast(shift)), n);
    });
  });
}

}  // namespace neuron::host_kernels::NEURON_ISA_NAMESPACE

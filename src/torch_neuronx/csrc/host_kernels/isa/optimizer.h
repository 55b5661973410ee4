// Parts of arrays in optimizer steps.
#pragma once

#include "host_kernels/isa/values.h"
#include "host_kernels/optimizer_kernels.h"

namespace neuron::host_kernels::NEURON_ISA_NAMESPACE {

// Sum of f over a stretch, in four independent parts.
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

inline F32 constant(double value) {
  return broadcast(static_cast<float>(value));
}

template <class T, class S>
void adam_part(
    const OptimizedArray& array,
    const AdamConstants& c,
    int64_t begin,
    int64_t count) {
  auto* parameter = static_cast<T*>(array.parameter) + begin;
  const auto* gradient = static_cast<const T*>(array.gradient) + begin;
  auto* first = static_cast<S*>(array.first) + begin;
  auto* second = static_cast<S*>(array.second) + begin;
  auto* maximum = array.maximum == nullptr
                      ? nullptr
                      : static_cast<S*>(array.maximum) + begin;
  for_vectors(count, [&](int64_t i, int64_t n) {
    auto p = load_some(parameter + i, n);
    auto g = load_some(gradient + i, n) * broadcast(c.gradient_factor);
    g = fma(p, broadcast(c.decay), g);
    p = p * broadcast(c.kept);
    auto m = load_some(first + i, n);
    m = fma(g - m, broadcast(c.first_gain), m);
    auto v = load_some(second + i, n) * broadcast(c.beta2);
    v = fma(g * broadcast(c.second_gain), g, v);
    store_some(first + i, m, n);
    store_some(second + i, v, n);
    if (maximum != nullptr) {
      v = max(load_some(maximum + i, n), v);
      store_some(maximum + i, v, n);
    }
    const auto scale =
        fma(sqrt(v), broadcast(c.second_factor), broadcast(c.eps));
    store_some(parameter + i, p - broadcast(c.step_size) * m / scale, n);
  });
}

template <class T, class S>
void sgd_part(
    const OptimizedArray& array,
    const SgdOptions& o,
    int64_t begin,
    int64_t count) {
  auto* parameter = static_cast<T*>(array.parameter) + begin;
  const auto* gradient = static_cast<const T*>(array.gradient) + begin;
  auto* momentum =
      array.first == nullptr ? nullptr : static_cast<S*>(array.first) + begin;
  const auto factor = constant((o.maximize ? -1.0 : 1.0) / o.gradient_scale);
  for_vectors(count, [&](int64_t i, int64_t n) {
    const auto p = load_some(parameter + i, n);
    auto g = load_some(gradient + i, n) * factor;
    g = fma(p, constant(o.weight_decay), g);
    if (momentum != nullptr && o.momentum != 0.0) {
      auto m = g;
      if (!o.first_step) {
        m =
            fma(load_some(momentum + i, n),
                constant(o.momentum),
                g * constant(1.0 - o.dampening));
      }
      store_some(momentum + i, m, n);
      g = o.nesterov ? fma(m, constant(o.momentum), g) : m;
    }
    store_some(parameter + i, fma(g, constant(-o.learning_rate), p), n);
  });
}

inline void adam(
    const OptimizedArray& array,
    const AdamConstants& constants,
    int64_t begin,
    int64_t end) {
  with_value_types(
      array.dtype, array.state_dtype, [&]<class T, class S>(T*, S*) {
        adam_part<T, S>(array, constants, begin, end - begin);
      });
}

inline void sgd(
    const OptimizedArray& array,
    const SgdOptions& options,
    int64_t begin,
    int64_t end) {
  with_value_types(
      array.dtype, array.state_dtype, [&]<class T, class S>(T*, S*) {
        sgd_part<T, S>(array, options, begin, end - begin);
      });
}

inline double sum_of_squares(const Array& array, int64_t begin, int64_t end) {
  // fp32 over short stretches, double over those.
  constexpr int64_t kStretch = 2048;
  double total = 0.0;
  with_value_type(array.dtype, [&]<class T>(T*) {
    const auto* data = static_cast<const T*>(array.data);
    for (auto at = begin; at < end; at += kStretch) {
      const auto count = end - at < kStretch ? end - at : kStretch;
      total += sum_over(count, [&](int64_t i, int64_t n) {
        const auto x = load_some(data + at + i, n);
        return x * x;
      });
    }
  });
  return total;
}

inline void scale(
    const Array& array, float factor, int64_t begin, int64_t end) {
  with_value_type(array.dtype, [&]<class T>(T*) {
    auto* data = static_cast<T*>(array.data) + begin;
    for_vectors(end - begin, [&](int64_t i, int64_t n) {
      store_some(data + i, load_some(data + i, n) * broadcast(factor), n);
    });
  });
}

}  // namespace neuron::host_kernels::NEURON_ISA_NAMESPACE

// The row kernels of one instruction set. The including file has set the
// target and names its namespace in NEURON_ISA_NAMESPACE.
#pragma once

#include "host_kernels/row_sum.h"
#include "host_kernels/vector_casts.h"

namespace neuron::host_kernels::NEURON_ISA_NAMESPACE {
namespace {

// A row as fp32: itself, or converted into this thread's buffer.
template <class T>
const float* read_row(const void* data, int64_t row, int64_t n, int slot) {
  const auto* from = static_cast<const T*>(data) + row * n;
  if constexpr (std::is_same_v<T, float>) {
    return from;
  } else {
    auto* buffer = row_buffer(slot, n);
    cast<T, float>(buffer, from, n);
    return buffer;
  }
}

// Where to compute an fp32 row that write_row will round.
template <class T>
float* row_to_write(void* data, int64_t row, int64_t n, int slot) {
  if constexpr (std::is_same_v<T, float>) {
    return static_cast<T*>(data) + row * n;
  } else {
    return row_buffer(slot, n);
  }
}

template <class T>
void write_row(void* data, int64_t row, int64_t n, const float* values) {
  if constexpr (!std::is_same_v<T, float>) {
    cast<float, T>(static_cast<T*>(data) + row * n, values, n);
  }
}

// A product that is rounded before it is added: ATen's reductions of products
// are not contracted.
inline F32 rounded(F32 a) {
#if NEURON_ISA == 2
  __m512 value = a;
  asm("" : "+x"(value));
  return value;
#elif NEURON_ISA == 1
  __m256 value = a;
  asm("" : "+x"(value));
  return value;
#else
  return a;
#endif
}

inline float rounded(float a) {
#if NEURON_ISA > 0
  asm("" : "+x"(a));
#endif
  return a;
}

inline float row_max(const float* in, int64_t n) {
  return at::vec::reduce_all<float>(
      [](F32 x, F32 y) { return at::vec::maximum(x, y); }, in, n);
}

inline float plain_sum(const float* in, int64_t n) {
  return at::vec::reduce_all<float>([](F32 x, F32 y) { return x + y; }, in, n);
}

template <class T>
void softmax(void* out, const void* in, int64_t begin, int64_t end, int64_t n) {
  for (int64_t row = begin; row < end; ++row) {
    const auto* x = read_row<T>(in, row, n, 0);
    auto* y = row_to_write<T>(out, row, n, 1);
    const float most = row_max(x, n);
    at::vec::map([most](F32 v) { return (v - F32(most)).exp(); }, y, x, n);
    const float scale = 1.0f / plain_sum(y, n);
    at::vec::map([scale](F32 v) { return v * F32(scale); }, y, y, n);
    write_row<T>(out, row, n, y);
  }
}

template <class T>
void log_softmax(
    void* out, const void* in, int64_t begin, int64_t end, int64_t n) {
  for (int64_t row = begin; row < end; ++row) {
    const auto* x = read_row<T>(in, row, n, 0);
    auto* y = row_to_write<T>(out, row, n, 1);
    const float most = row_max(x, n);
    float sum = at::vec::map_reduce_all<float>(
        [most](F32 v) { return (v - F32(most)).exp(); },
        [](F32 a, F32 b) { return a + b; },
        x,
        n);
    at::vec::map([](F32 v) { return v.log(); }, &sum, &sum, 1);
    // In this order: the maximum may be far larger than the logarithm.
    at::vec::map(
        [most, sum](F32 v) { return v - F32(most) - F32(sum); }, y, x, n);
    write_row<T>(out, row, n, y);
  }
}

template <class T>
void softmax_backward(
    void* out,
    const void* gradient,
    const void* output,
    int64_t begin,
    int64_t end,
    int64_t n) {
  for (int64_t row = begin; row < end; ++row) {
    const auto* g = read_row<T>(gradient, row, n, 0);
    const auto* y = read_row<T>(output, row, n, 1);
    auto* to = row_to_write<T>(out, row, n, 2);
    const float sum = at::vec::map2_reduce_all<float>(
        [](F32 a, F32 b) { return rounded(a * b); },
        [](F32 a, F32 b) { return a + b; },
        g,
        y,
        n);
    at::vec::map2(
        [sum](F32 a, F32 b) { return (a - F32(sum)) * b; }, to, g, y, n);
    write_row<T>(out, row, n, to);
  }
}

template <class T>
void log_softmax_backward(
    void* out,
    const void* gradient,
    const void* output,
    int64_t begin,
    int64_t end,
    int64_t n) {
  for (int64_t row = begin; row < end; ++row) {
    const auto* g = read_row<T>(gradient, row, n, 0);
    const auto* y = read_row<T>(output, row, n, 1);
    auto* to = row_to_write<T>(out, row, n, 2);
    const float sum = plain_sum(g, n);
    at::vec::map2(
        [sum](F32 a, F32 b) { return a - b.exp() * F32(sum); }, to, g, y, n);
    write_row<T>(out, row, n, to);
  }
}

template <class T>
void reduce_sum(
    void* out, const void* in, int64_t begin, int64_t end, int64_t n) {
  for (int64_t row = begin; row < end; ++row) {
    static_cast<T*>(out)[row] =
        static_cast<T>(cascade_sum(read_row<T>(in, row, n, 0), n));
  }
}

template <class T>
void reduce_mean(
    void* out, const void* in, int64_t begin, int64_t end, int64_t n) {
  for (int64_t row = begin; row < end; ++row) {
    static_cast<T*>(out)[row] = static_cast<T>(
        cascade_sum(read_row<T>(in, row, n, 0), n) / static_cast<float>(n));
  }
}

template <class T>
void reduce_max(
    void* out, const void* in, int64_t begin, int64_t end, int64_t n) {
  for (int64_t row = begin; row < end; ++row) {
    static_cast<T*>(out)[row] =
        static_cast<T>(row_max(read_row<T>(in, row, n, 0), n));
  }
}

template <class T>
void layer_norm(const LayerNorm& norm, int64_t begin, int64_t end, int64_t n) {
  const float* weight =
      norm.weight == nullptr ? nullptr : read_row<T>(norm.weight, 0, n, 2);
  const float* bias =
      norm.bias == nullptr ? nullptr : read_row<T>(norm.bias, 0, n, 3);
  for (int64_t row = begin; row < end; ++row) {
    const auto* x = read_row<T>(norm.in, row, n, 0);
    auto* y = row_to_write<T>(norm.out, row, n, 1);
    const auto [mean, variance] = at::native::RowwiseMoments(x, n);
    const float rstd =
        1.0f /
        std::sqrt(std::max(variance, 0.0f) + static_cast<float>(norm.epsilon));
    const F32 shift(-mean);
    const F32 scale(rstd);
    const auto normal = [&](F32 v) { return (v + shift) * scale; };
    if (weight != nullptr && bias != nullptr) {
      at::vec::map3<float>(
          [&](F32 v, F32 w, F32 b) { return at::vec::fmadd(normal(v), w, b); },
          y,
          x,
          weight,
          bias,
          n);
    } else if (weight != nullptr) {
      at::vec::map2<float>(
          [&](F32 v, F32 w) { return normal(v) * w; }, y, x, weight, n);
    } else if (bias != nullptr) {
      at::vec::map2<float>(
          [&](F32 v, F32 b) { return normal(v) + b; }, y, x, bias, n);
    } else {
      at::vec::map<float>(normal, y, x, n);
    }
    write_row<T>(norm.out, row, n, y);
    static_cast<T*>(norm.mean)[row] = static_cast<T>(mean);
    static_cast<T*>(norm.rstd)[row] = static_cast<T>(rstd);
  }
}

// With g = gradient * weight and xhat = (x - mean) * rstd:
// dx = rstd * (g - mean(g) - xhat * mean(g * xhat)), in the CPU's arrangement.
template <class T>
void layer_norm_backward(
    const LayerNormBackward& norm, int64_t begin, int64_t end, int64_t n) {
  const float* weight =
      norm.weight == nullptr ? nullptr : read_row<T>(norm.weight, 0, n, 3);
  const auto add = [](F32 a, F32 b) { return a + b; };
  for (int64_t row = begin; row < end; ++row) {
    const auto* g = read_row<T>(norm.gradient, row, n, 0);
    const auto* x = read_row<T>(norm.in, row, n, 1);
    const float mean = static_cast<const T*>(norm.mean)[row];
    const float rstd = static_cast<const T*>(norm.rstd)[row];
    if (norm.weight_gradient != nullptr) {
      const F32 scale(rstd);
      const F32 shift(-rstd * mean);
      auto* to = norm.weight_gradient;
      at::vec::map3<float>(
          [&](F32 sum, F32 dy, F32 v) {
            return at::vec::fmadd(dy, at::vec::fmadd(scale, v, shift), sum);
          },
          to,
          to,
          g,
          x,
          n);
    }
    if (norm.bias_gradient != nullptr) {
      auto* to = norm.bias_gradient;
      at::vec::map2<float>(add, to, to, g, n);
    }
    if (norm.in_gradient == nullptr) {
      continue;
    }
    const float product_sum =
        weight != nullptr
            ? at::vec::map3_reduce_all<float>(
                  [](F32 dy, F32 v, F32 w) { return rounded(dy * v * w); },
                  add,
                  g,
                  x,
                  weight,
                  n)
            : at::vec::map2_reduce_all<float>(
                  [](F32 dy, F32 v) { return rounded(dy * v); }, add, g, x, n);
    const float sum = weight != nullptr
                          ? at::vec::map2_reduce_all<float>(
                                [](F32 dy, F32 w) { return rounded(dy * w); },
                                add,
                                g,
                                weight,
                                n)
                          : at::vec::reduce_all<float>(add, g, n);
    const float over_n = 1.0f / static_cast<float>(n);
    const float b =
        (rounded(sum * mean) - product_sum) * rstd * rstd * rstd * over_n;
    const float c = rounded(-b * mean) - rounded(sum * rstd * over_n);
    const F32 a_vec(rstd);
    const F32 b_vec(b);
    const F32 c_vec(c);
    auto* to = row_to_write<T>(norm.in_gradient, row, n, 2);
    if (weight != nullptr) {
      at::vec::map3<float>(
          [&](F32 dy, F32 v, F32 w) {
            return at::vec::fmadd(a_vec * dy, w, b_vec * v) + c_vec;
          },
          to,
          g,
          x,
          weight,
          n);
    } else {
      at::vec::map2<float>(
          [&](F32 dy, F32 v) {
            return at::vec::fmadd(a_vec, dy, b_vec * v) + c_vec;
          },
          to,
          g,
          x,
          n);
    }
    write_row<T>(norm.in_gradient, row, n, to);
  }
}

inline void column_sum(
    void* out,
    const void* in,
    int64_t rows,
    int64_t columns,
    int64_t begin,
    int64_t end) {
  column_sums(
      static_cast<float*>(out),
      static_cast<const float*>(in),
      rows,
      columns,
      begin,
      end);
}

template <class T>
constexpr RowKernels row_table() {
  RowKernels kernels;
  if constexpr (std::is_same_v<T, float>) {
    kernels.column_sum = column_sum;
  }
  kernels.softmax = softmax<T>;
  kernels.log_softmax = log_softmax<T>;
  kernels.softmax_backward = softmax_backward<T>;
  kernels.log_softmax_backward = log_softmax_backward<T>;
  kernels.reduce[static_cast<int>(RowReduction::sum)] = reduce_sum<T>;
  kernels.reduce[static_cast<int>(RowReduction::mean)] = reduce_mean<T>;
  kernels.reduce[static_cast<int>(RowReduction::max)] = reduce_max<T>;
  kernels.layer_norm = layer_norm<T>;
  kernels.layer_norm_backward = layer_norm_backward<T>;
  return kernels;
}

}  // namespace
}  // namespace neuron::host_kernels::NEURON_ISA_NAMESPACE

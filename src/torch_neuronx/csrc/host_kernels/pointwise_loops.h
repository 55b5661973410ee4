// The loops of one instruction set. The including file has set the target
// and names its namespace in NEURON_ISA_NAMESPACE.
#pragma once

#include "host_kernels/vector_casts.h"

namespace neuron::host_kernels::NEURON_ISA_NAMESPACE {
namespace {

constexpr float kSqrtHalf = 0.70710678118654752440f;
constexpr float kNormalPeak = 0.39894228040143267794f;  // 1 / sqrt(2 pi)
constexpr float kGeluBeta = 0.79788456080286535588f;    // sqrt(2 / pi)
constexpr float kGeluKappa = 0.044715f;

#include "host_kernels/pointwise_functions.h"
#include "host_kernels/pointwise_ops.h"

// Applies f to vectors of what T computes in, rounding once on the way out.
template <class T, class F>
Vec<T> in_compute(F&& f, Vec<T> a) {
  if constexpr (kReduced<T>) {
    auto [a0, a1] = at::vec::convert_to_float<T>(a);
    return at::vec::convert_from_float<T>(f(a0), f(a1));
  } else {
    return f(a);
  }
}

template <class T, class F>
Vec<T> in_compute(F&& f, Vec<T> a, Vec<T> b) {
  if constexpr (kReduced<T>) {
    auto [a0, a1] = at::vec::convert_to_float<T>(a);
    auto [b0, b1] = at::vec::convert_to_float<T>(b);
    return at::vec::convert_from_float<T>(f(a0, b0), f(a1, b1));
  } else {
    return f(a, b);
  }
}

template <class T, class F>
Vec<T> in_compute(F&& f, Vec<T> a, Vec<T> b, Vec<T> c) {
  if constexpr (kReduced<T>) {
    auto [a0, a1] = at::vec::convert_to_float<T>(a);
    auto [b0, b1] = at::vec::convert_to_float<T>(b);
    auto [c0, c1] = at::vec::convert_to_float<T>(c);
    return at::vec::convert_from_float<T>(f(a0, b0, c0), f(a1, b1, c1));
  } else {
    return f(a, b, c);
  }
}

// out[i] = f(in[i]...) with whole vectors, then the rest in one partial one.
template <class T, class F, class... In>
void map(F&& f, void* out_data, int64_t count, const In*... in) {
  auto* out = static_cast<T*>(out_data);
  constexpr int64_t lanes = Vec<T>::size();
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    in_compute<T>(f, Vec<T>::loadu(in + i)...).store(out + i);
  }
  if (i < count) {
    const auto rest = static_cast<int>(count - i);
    in_compute<T>(f, Vec<T>::loadu(in + i, rest)...).store(out + i, rest);
  }
}

template <class T, class Op>
void unary(void* out, const void* in, int64_t count) {
  map<T>(
      [](auto a) { return Op::of(a); }, out, count, static_cast<const T*>(in));
}

template <class T, class Op>
void both(
    void* out, const void* a, const void* b, int64_t count, double parameter) {
  const Vec<Compute<T>> p(static_cast<Compute<T>>(parameter));
  map<T>(
      [p](auto x, auto y) { return Op::of(x, y, p); },
      out,
      count,
      static_cast<const T*>(a),
      static_cast<const T*>(b));
}

template <class T, class Op>
void right_value(
    void* out, const void* a, const void* b, int64_t count, double parameter) {
  const Vec<Compute<T>> p(static_cast<Compute<T>>(parameter));
  const Vec<Compute<T>> y(*static_cast<const Compute<T>*>(b));
  map<T>(
      [p, y](auto x) { return Op::of(x, y, p); },
      out,
      count,
      static_cast<const T*>(a));
}

template <class T, class Op>
void left_value(
    void* out, const void* a, const void* b, int64_t count, double parameter) {
  const Vec<Compute<T>> p(static_cast<Compute<T>>(parameter));
  const Vec<Compute<T>> x(*static_cast<const Compute<T>*>(a));
  map<T>(
      [p, x](auto y) { return Op::of(x, y, p); },
      out,
      count,
      static_cast<const T*>(b));
}

template <class T, class Op>
void compare_both(
    void* out, const void* a, const void* b, int64_t count, double) {
  auto* to = static_cast<bool*>(out);
  const auto* x = static_cast<const T*>(a);
  const auto* y = static_cast<const T*>(b);
  for (int64_t i = 0; i < count; ++i) {
    to[i] =
        Op::of(static_cast<Compute<T>>(x[i]), static_cast<Compute<T>>(y[i]));
  }
}

template <class T, class Op>
void compare_right(
    void* out, const void* a, const void* b, int64_t count, double) {
  auto* to = static_cast<bool*>(out);
  const auto* x = static_cast<const T*>(a);
  const auto y = *static_cast<const Compute<T>*>(b);
  for (int64_t i = 0; i < count; ++i) {
    to[i] = Op::of(static_cast<Compute<T>>(x[i]), y);
  }
}

template <class T, class Op>
void compare_left(
    void* out, const void* a, const void* b, int64_t count, double) {
  auto* to = static_cast<bool*>(out);
  const auto x = *static_cast<const Compute<T>*>(a);
  const auto* y = static_cast<const T*>(b);
  for (int64_t i = 0; i < count; ++i) {
    to[i] = Op::of(x, static_cast<Compute<T>>(y[i]));
  }
}

template <class T, class Op>
void ternary(
    void* out,
    const void* a,
    const void* b,
    const void* c,
    int64_t count,
    double parameter) {
  const Vec<Compute<T>> p(static_cast<Compute<T>>(parameter));
  map<T>(
      [p](auto x, auto y, auto z) { return Op::of(x, y, z, p); },
      out,
      count,
      static_cast<const T*>(a),
      static_cast<const T*>(b),
      static_cast<const T*>(c));
}

template <class T>
void add_arithmetic(PointwiseTable& table, int dtype) {
  const auto binary = [&]<class Op>(Binary kind, Op) {
    table.binary[static_cast<int>(kind)][dtype] = {
        both<T, Op>, left_value<T, Op>, right_value<T, Op>};
  };
  const auto compare = [&]<class Op>(Binary kind, Op) {
    table.binary[static_cast<int>(kind)][dtype] = {
        compare_both<T, Op>, compare_left<T, Op>, compare_right<T, Op>};
  };
  binary(Binary::add, Add());
  binary(Binary::subtract, Subtract());
  binary(Binary::multiply, Multiply());
  compare(Binary::equal, Equal());
  compare(Binary::not_equal, NotEqual());
  compare(Binary::less, Less());
  compare(Binary::less_equal, LessEqual());
  compare(Binary::greater, Greater());
  compare(Binary::greater_equal, GreaterEqual());
  const auto unary_op = [&]<class Op>(Unary kind, Op) {
    table.unary[static_cast<int>(kind)][dtype] = unary<T, Op>;
  };
  unary_op(Unary::neg, Neg());
  unary_op(Unary::abs, Abs());
  unary_op(Unary::square, Square());
}

template <class T>
void add_floating(PointwiseTable& table, int dtype) {
  add_arithmetic<T>(table, dtype);
  const auto unary_op = [&]<class Op>(Unary kind, Op) {
    table.unary[static_cast<int>(kind)][dtype] = unary<T, Op>;
  };
  unary_op(Unary::sqrt, Sqrt());
  unary_op(Unary::rsqrt, Rsqrt());
  unary_op(Unary::reciprocal, Reciprocal());
  unary_op(Unary::relu, Relu());
  const auto binary = [&]<class Op>(Binary kind, Op) {
    table.binary[static_cast<int>(kind)][dtype] = {
        both<T, Op>, left_value<T, Op>, right_value<T, Op>};
  };
  binary(Binary::add_scaled, AddScaled());
  binary(Binary::divide, Divide());
  binary(Binary::threshold_backward, ThresholdBackward());
  binary(Binary::sigmoid_backward, SigmoidBackward());
  binary(Binary::tanh_backward, TanhBackward());
  const auto ternary_op = [&]<class Op>(Ternary kind, Op) {
    table.ternary[static_cast<int>(kind)][dtype] = ternary<T, Op>;
  };
  ternary_op(Ternary::addcmul, Addcmul());
  ternary_op(Ternary::addcdiv, Addcdiv());
  ternary_op(Ternary::lerp, Lerp());
}

// What is computed in fp32: fp32, bf16 and fp16.
template <class T>
void add_activations(PointwiseTable& table, int dtype) {
  add_floating<T>(table, dtype);
  const auto unary_op = [&]<class Op>(Unary kind, Op) {
    table.unary[static_cast<int>(kind)][dtype] = unary<T, Op>;
  };
  unary_op(Unary::exp, Exp());
  unary_op(Unary::log, Log());
  unary_op(Unary::tanh, Tanh());
  unary_op(Unary::sigmoid, Sigmoid());
  unary_op(Unary::silu, Silu());
  unary_op(Unary::gelu, Gelu());
  unary_op(Unary::gelu_tanh, GeluTanh());
  const auto gradient = [&]<class Op>(Binary kind, Op) {
    table.binary[static_cast<int>(kind)][dtype].both = both<T, Op>;
  };
  gradient(Binary::gelu_backward, GeluBackward());
  gradient(Binary::gelu_tanh_backward, GeluTanhBackward());
  gradient(Binary::silu_backward, SiluBackward());
}

template <class From, class... To>
void add_casts(PointwiseTable& table, int from) {
  int to = 0;
  ((table.cast[from][to++] = cast<From, To>), ...);
}

template <class... T>
void add_all_casts(PointwiseTable& table) {
  int from = 0;
  (add_casts<T, T...>(table, from++), ...);
}

PointwiseTable make_table() {
  PointwiseTable table;
  add_activations<float>(table, 0);
  add_activations<c10::BFloat16>(table, 1);
  add_activations<c10::Half>(table, 2);
  add_floating<double>(table, 3);
  add_arithmetic<int64_t>(table, 4);
  add_arithmetic<int32_t>(table, 5);
  add_all_casts<
      float,
      c10::BFloat16,
      c10::Half,
      double,
      int64_t,
      int32_t,
      bool,
      uint8_t>(table);
  return table;
}

}  // namespace
}  // namespace neuron::host_kernels::NEURON_ISA_NAMESPACE

// The elementwise formulas on vectors of fp32 (and other) lanes. Included by
// pointwise_loops.h inside the namespace of one instruction set.

struct Neg {
  template <class V>
  static V of(V a) {
    return a.neg();
  }
};
struct Abs {
  template <class V>
  static V of(V a) {
    return a.abs();
  }
};
struct Exp {
  template <class V>
  static V of(V a) {
    return a.exp();
  }
};
struct Log {
  template <class V>
  static V of(V a) {
    return a.log();
  }
};
struct Sqrt {
  template <class V>
  static V of(V a) {
    return a.sqrt();
  }
};
struct Rsqrt {
  template <class V>
  static V of(V a) {
    return a.rsqrt();
  }
};
struct Reciprocal {
  template <class V>
  static V of(V a) {
    return a.reciprocal();
  }
};
struct Relu {
  template <class V>
  static V of(V a) {
    return at::vec::clamp_min(a, V(0));
  }
};
struct Tanh {
  template <class V>
  static V of(V a) {
    if constexpr (std::is_same_v<V, F32>) {
      return tanh(a);
    } else {
      return a.tanh();
    }
  }
};
struct Square {
  template <class V>
  static V of(V a) {
    return a * a;
  }
};
struct Sigmoid {
  template <class V>
  static V of(V a) {
    return (V(1) + (V(0) - a).exp()).reciprocal();
  }
};
struct Silu {
  template <class V>
  static V of(V a) {
    return a / (V(1) + a.neg().exp());
  }
};

inline F32 normal_cdf(F32 a) {
  return F32(0.5f) * (F32(1) + erf(a * F32(kSqrtHalf)));
}

struct Gelu {
  static F32 of(F32 a) { return a * normal_cdf(a); }
};
struct GeluTanh {
  static F32 of(F32 a) {
    const auto inner = F32(kGeluBeta) * (a + F32(kGeluKappa) * (a * a * a));
    return F32(0.5f) * a * (F32(1) + tanh(inner));
  }
};

struct Add {
  template <class V>
  static V of(V a, V b, V) {
    return a + b;
  }
};
struct AddScaled {
  template <class V>
  static V of(V a, V b, V scale) {
    return at::vec::fmadd(b, scale, a);
  }
};
struct Subtract {
  template <class V>
  static V of(V a, V b, V) {
    return a - b;
  }
};
struct Multiply {
  template <class V>
  static V of(V a, V b, V) {
    return a * b;
  }
};
struct Divide {
  template <class V>
  static V of(V a, V b, V) {
    return a / b;
  }
};
struct ThresholdBackward {
  template <class V>
  static V of(V gradient, V a, V threshold) {
    return V::blendv(gradient, V(0), a <= threshold);
  }
};
struct GeluBackward {
  static F32 of(F32 gradient, F32 a, F32) {
    const auto pdf = F32(kNormalPeak) * (F32(-0.5f) * a * a).exp();
    return gradient * (normal_cdf(a) + a * pdf);
  }
};
struct GeluTanhBackward {
  static F32 of(F32 gradient, F32 a, F32) {
    const auto square = a * a;
    const auto inner = F32(kGeluBeta) * (a + F32(kGeluKappa) * (square * a));
    const auto curve = tanh(inner);
    const auto slope = F32(kGeluBeta) * (F32(1) + F32(3 * kGeluKappa) * square);
    const auto left = F32(0.5f) * (F32(1) + curve);
    const auto right = F32(0.5f) * a * (F32(1) - curve * curve) * slope;
    return gradient * (left + right);
  }
};
struct SiluBackward {
  static F32 of(F32 gradient, F32 a, F32) {
    const auto sigmoid = F32(1) / (F32(1) + a.neg().exp());
    return gradient * sigmoid * at::vec::fmadd(a, F32(1) - sigmoid, F32(1));
  }
};
struct SigmoidBackward {
  template <class V>
  static V of(V gradient, V out, V) {
    return gradient * (V(1) - out) * out;
  }
};
struct TanhBackward {
  template <class V>
  static V of(V gradient, V out, V) {
    return gradient * at::vec::fmadd(out.neg(), out, V(1));
  }
};

struct Equal {
  template <class T>
  static bool of(T a, T b) {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  static bool of(T a, T b) {
    return a != b;
  }
};
struct Less {
  template <class T>
  static bool of(T a, T b) {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  static bool of(T a, T b) {
    return a <= b;
  }
};
struct Greater {
  template <class T>
  static bool of(T a, T b) {
    return a > b;
  }
};
struct GreaterEqual {
  template <class T>
  static bool of(T a, T b) {
    return a >= b;
  }
};

struct Addcmul {
  template <class V>
  static V of(V a, V b, V c, V value) {
    return at::vec::fmadd(value * b, c, a);
  }
};
struct Addcdiv {
  template <class V>
  static V of(V a, V b, V c, V value) {
    return a + value * b / c;
  }
};
// From whichever end is nearer, so that a weight of 1 gives b exactly.
struct Lerp {
  template <class V>
  static V of(V a, V b, V, V weight) {
    const auto near_a = weight.abs() < V(0.5f);
    const auto coefficient = V::blendv(weight - V(1), weight, near_a);
    const auto base = V::blendv(b, a, near_a);
    return at::vec::fmadd(coefficient, b - a, base);
  }
};

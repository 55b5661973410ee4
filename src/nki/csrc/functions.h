// Arithmetic on rows of fp32. Included once per instruction set.

// e^x to about one unit in the last place, without branches.
inline float exponential(float x) {
  const float clamped = x < -104.0f ? -104.0f : (x > 89.0f ? 89.0f : x);
  const float n = __builtin_rintf(clamped * 1.44269504088896341f);
  float r = clamped - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  // Two factors, so that denormal results and 2^128 are reached in steps.
  const int32_t k = static_cast<int32_t>(n);
  const int32_t first = k >> 1;
  const float a = bits_to_float(static_cast<uint32_t>(first + 127) << 23);
  const float b = bits_to_float(static_cast<uint32_t>(k - first + 127) << 23);
  const float y = p * a * b;
  return x != x ? x : y;
}

inline float sigmoid(float x) {
  const float e = exponential(x < 0 ? x : -x);
  return x >= 0 ? 1.0f / (1.0f + e) : e / (1.0f + e);
}

inline float hyperbolic_tangent(float x) {
  const float a = x < 0 ? -x : x;
  const float e = exponential(-2.0f * a);
  const float large = (1.0f - e) / (1.0f + e);
  const float s = x * x;
  float p = -5.70498872745e-3f;  // near 0 the quotient would cancel
  p = p * s + 2.06390887954e-2f;
  p = p * s - 5.37397155531e-2f;
  p = p * s + 1.33314422036e-1f;
  p = p * s - 3.33332819422e-1f;
  const float small = a + a * s * p;
  const float magnitude = a < 0.625f ? small : large;
  const float y = x < 0 ? -magnitude : magnitude;
  return x != x ? x : y;
}

template <class F>
inline void map_row(float* x, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i)
    x[i] = f(x[i]);
}

inline void apply_function(Function function, float* x, int64_t n) {
  switch (function) {
    case Function::copy:
      return;
    case Function::square:
      return map_row(x, n, [](float v) { return v * v; });
    case Function::sigmoid:
      return map_row(x, n, [](float v) { return sigmoid(v); });
    case Function::relu:
      return map_row(x, n, [](float v) { return v < 0 ? 0.0f : v; });
    case Function::silu:
      return map_row(x, n, [](float v) { return v * sigmoid(v); });
    case Function::tanh:
      return map_row(x, n, [](float v) { return hyperbolic_tangent(v); });
    case Function::exp:
      return map_row(x, n, [](float v) { return exponential(v); });
    case Function::sqrt:
      return map_row(x, n, [](float v) { return __builtin_sqrtf(v); });
    case Function::rsqrt:
      return map_row(x, n, [](float v) { return 1.0f / __builtin_sqrtf(v); });
    case Function::reciprocal:
      return map_row(x, n, [](float v) { return 1.0f / v; });
    case Function::abs:
      return map_row(x, n, [](float v) { return __builtin_fabsf(v); });
    case Function::gelu_apprx_sigmoid:
      return map_row(x, n, [](float v) { return v * sigmoid(1.702f * v); });
    case Function::gelu_apprx_tanh:
      return map_row(x, n, [](float v) {
        const float inner = 0.7978845608f * (v + 0.044715f * v * v * v);
        return 0.5f * v * (1.0f + hyperbolic_tangent(inner));
      });
    case Function::log:
      return map_row(x, n, [](float v) { return std::log(v); });
    case Function::sign:
      return map_row(x, n, [](float v) {
        return v != v ? v : (v > 0 ? 1.0f : (v < 0 ? -1.0f : 0.0f));
      });
  }
}

// NaN wins, as in NumPy.
inline float larger(float a, float b) { return a != a || a > b ? a : b; }
inline float smaller(float a, float b) { return a != a || a < b ? a : b; }

// `get(i)` is the second operand of element i.
template <class G>
inline void apply_alu(Alu op, float* x, int64_t n, G get) {
  switch (op) {
    case Alu::none:
    case Alu::bypass:
      return;
    case Alu::add:
      for (int64_t i = 0; i < n; ++i)
        x[i] = x[i] + get(i);
      return;
    case Alu::subtract:
      for (int64_t i = 0; i < n; ++i)
        x[i] = x[i] - get(i);
      return;
    case Alu::multiply:
      for (int64_t i = 0; i < n; ++i)
        x[i] = x[i] * get(i);
      return;
    case Alu::maximum:
      for (int64_t i = 0; i < n; ++i)
        x[i] = larger(x[i], get(i));
      return;
    case Alu::minimum:
      for (int64_t i = 0; i < n; ++i)
        x[i] = smaller(x[i], get(i));
      return;
    case Alu::divide:
      for (int64_t i = 0; i < n; ++i)
        x[i] = x[i] / get(i);
      return;
    case Alu::equal:
      for (int64_t i = 0; i < n; ++i)
        x[i] = x[i] == get(i) ? 1.0f : 0.0f;
      return;
    case Alu::not_equal:
      for (int64_t i = 0; i < n; ++i)
        x[i] = x[i] != get(i) ? 1.0f : 0.0f;
      return;
    case Alu::greater:
      for (int64_t i = 0; i < n; ++i)
        x[i] = x[i] > get(i) ? 1.0f : 0.0f;
      return;
    case Alu::greater_equal:
      for (int64_t i = 0; i < n; ++i)
        x[i] = x[i] >= get(i) ? 1.0f : 0.0f;
      return;
    case Alu::less:
      for (int64_t i = 0; i < n; ++i)
        x[i] = x[i] < get(i) ? 1.0f : 0.0f;
      return;
    case Alu::less_equal:
      for (int64_t i = 0; i < n; ++i)
        x[i] = x[i] <= get(i) ? 1.0f : 0.0f;
      return;
    case Alu::logical_and:
      for (int64_t i = 0; i < n; ++i)
        x[i] = x[i] != 0 && get(i) != 0 ? 1.0f : 0.0f;
      return;
    case Alu::logical_or:
      for (int64_t i = 0; i < n; ++i)
        x[i] = x[i] != 0 || get(i) != 0 ? 1.0f : 0.0f;
      return;
    case Alu::power:
      for (int64_t i = 0; i < n; ++i)
        x[i] = std::pow(x[i], get(i));
      return;
    case Alu::abs:
      return apply_function(Function::abs, x, n);
    case Alu::square:
      return apply_function(Function::square, x, n);
    case Alu::relu:
      return apply_function(Function::relu, x, n);
    case Alu::rsqrt:
      return apply_function(Function::rsqrt, x, n);
    case Alu::reciprocal:
      return apply_function(Function::reciprocal, x, n);
  }
}

// x op other, or other op x, where other is a row.
inline void apply_tile(
    Alu op, bool reverse, float* x, float* other, int64_t n) {
  if (!reverse)
    return apply_alu(op, x, n, [=](int64_t i) { return other[i]; });
  apply_alu(op, other, n, [=](int64_t i) { return x[i]; });
  std::memcpy(x, other, static_cast<size_t>(n) * sizeof(float));
}

// The same with one number for the whole row.
inline void apply_number(
    Alu op, bool reverse, float* x, float number, int64_t n, float* scratch) {
  if (!reverse)
    return apply_alu(op, x, n, [=](int64_t) { return number; });
  for (int64_t i = 0; i < n; ++i)
    scratch[i] = number;
  apply_tile(op, true, x, scratch, n);
}

inline float identity_of(Alu op) {
  switch (op) {
    case Alu::multiply:
      return 1.0f;
    case Alu::maximum:
      return -std::numeric_limits<float>::infinity();
    case Alu::minimum:
      return std::numeric_limits<float>::infinity();
    default:
      return 0.0f;
  }
}

constexpr int lanes = 16;

template <class F>
inline float fold_row(const float* x, int64_t n, float start, F f) {
  float part[lanes];
  for (int j = 0; j < lanes; ++j)
    part[j] = start;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int j = 0; j < lanes; ++j)
      part[j] = f(part[j], x[i + j]);
  for (; i < n; ++i)
    part[i % lanes] = f(part[i % lanes], x[i]);
  float total = part[0];
  for (int j = 1; j < lanes; ++j)
    total = f(total, part[j]);
  return total;
}

inline float reduce_row(Alu op, const float* x, int64_t n) {
  const float start = identity_of(op);
  switch (op) {
    case Alu::multiply:
      return fold_row(x, n, start, [](float a, float b) { return a * b; });
    case Alu::maximum:
      return fold_row(x, n, start, larger);
    case Alu::minimum:
      return fold_row(x, n, start, smaller);
    default:
      return fold_row(x, n, start, [](float a, float b) { return a + b; });
  }
}

inline float combine(Alu op, float a, float b) {
  switch (op) {
    case Alu::multiply:
      return a * b;
    case Alu::maximum:
      return larger(a, b);
    case Alu::minimum:
      return smaller(a, b);
    default:
      return a + b;
  }
}

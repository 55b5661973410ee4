// erf and tanh on vectors of fp32, where the host's libraries take several
// times as long. Polynomials by weighted least squares against float64; over
// all of fp32 the largest errors are 1.2 and 1.4 units in the last place.
// Included by pointwise_loops.h inside the namespace of one instruction set.

template <size_t n>
F32 polynomial(F32 x, const float (&coefficients)[n]) {
  F32 sum(coefficients[n - 1]);
  for (size_t i = n - 1; i-- > 0;) {
    sum = at::vec::fmadd(sum, x, F32(coefficients[i]));
  }
  return sum;
}

inline F32 with_sign_of(F32 magnitude, F32 a) {
  return magnitude | (a & F32(-0.0f));
}

// Near zero a (1 + P(a^2)), farther out 1 - exp(-Q(|a|)).
inline F32 erf(F32 a) {
  static constexpr float near[] = {
      0.128379151f,
      -0.37612468f,
      0.112815537f,
      -0.0267570652f,
      0.00497916434f,
      -0.00059195573f};
  static constexpr float far[] = {
      -0.000175548179f,
      1.12951922f,
      0.633337796f,
      0.108290486f,
      -0.0251263902f,
      0.00417379662f,
      -0.000435044669f,
      2.11468705e-05f};
  const auto magnitude = at::vec::minimum(a.abs(), F32(4));  // erf is 1 there
  const auto close = at::vec::fmadd(
      polynomial(magnitude * magnitude, near), magnitude, magnitude);
  const auto distant = F32(1) - polynomial(magnitude, far).neg().exp();
  return with_sign_of(F32::blendv(close, distant, magnitude > F32(0.9375f)), a);
}

// Near zero a (1 + a^2 P(a^2)), farther out 1 - 2 / (exp(2 |a|) + 1).
inline F32 tanh(F32 a) {
  static constexpr float near[] = {
      -0.333332807f,
      0.133314416f,
      -0.0537397154f,
      0.0206390861f,
      -0.00570498453f};
  const auto magnitude = a.abs();
  const auto square = a * a;
  const auto close =
      at::vec::fmadd(polynomial(square, near) * square, magnitude, magnitude);
  const auto distant =
      F32(1) - F32(2) / ((magnitude + magnitude).exp() + F32(1));
  return with_sign_of(F32::blendv(close, distant, magnitude > F32(0.625f)), a);
}

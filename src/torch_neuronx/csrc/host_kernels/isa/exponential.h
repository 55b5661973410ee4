// Exponentials of fp32 lanes.
#pragma once

#include "host_kernels/isa/vec.h"

namespace neuron::host_kernels::NEURON_ISA_NAMESPACE {

// 2^whole for integers in [-127, 128]; -127 gives 0.
inline F32 power_of_two(F32 whole) {
  return from_bits(
      int_shift_left<23>(int_add(to_int(whole), int_broadcast(127))));
}

// 2^x within 2 ulp for x in [-126, 128); 0 below -126.5, NaN for NaN. The
// coefficients are those of the Taylor series around 0, |fraction| <= 1/2.
inline F32 exp2(F32 x) {
  // The second operand wins when one is NaN.
  const auto bounded = min(broadcast(128.0f), max(broadcast(-127.0f), x));
  const auto whole = round(bounded);
  const auto f = bounded - whole;
  auto p = broadcast(1.5403530e-4f);
  p = fma(p, f, broadcast(1.3333558e-3f));
  p = fma(p, f, broadcast(9.6181291e-3f));
  p = fma(p, f, broadcast(5.5504109e-2f));
  p = fma(p, f, broadcast(0.24022651f));
  p = fma(p, f, broadcast(0.69314718f));
  p = fma(p, f, broadcast(1.0f));
  return p * power_of_two(whole);
}

// e^x within 2 ulp for x in [-87, 88]; 0 far below, infinity above.
inline F32 exp(F32 x) {
  const auto bounded = min(broadcast(88.8f), max(broadcast(-88.1f), x));
  const auto whole = round(bounded * broadcast(1.44269504f));
  // ln 2 in two parts, so that the fraction keeps all its bits.
  auto f = fma(whole, broadcast(-0.693145752f), bounded);
  f = fma(whole, broadcast(-1.42860677e-6f), f);
  auto p = broadcast(1.3888889e-3f);
  p = fma(p, f, broadcast(8.3333333e-3f));
  p = fma(p, f, broadcast(4.1666667e-2f));
  p = fma(p, f, broadcast(1.6666667e-1f));
  p = fma(p, f, broadcast(0.5f));
  p = fma(p, f, broadcast(1.0f));
  p = fma(p, f, broadcast(1.0f));
  return p * power_of_two(whole);
}

}  // namespace neuron::host_kernels::NEURON_ISA_NAMESPACE

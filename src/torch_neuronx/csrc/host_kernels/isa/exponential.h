// Powers of two of fp32 lanes.
#pragma once

#include "host_kernels/isa/vec.h"

namespace neuron::host_kernels::NEURON_ISA_NAMESPACE {

// 2^x within 2 ulp for x in [-126, 128); 0 below -126, NaN for NaN. The
// coefficients are those of the Taylor series around 0, |fraction| <= 1/2.
inline F32 exp2(F32 x) {
  // The second operand wins when one is NaN.
  const auto bounded = min(broadcast(128.0f), max(broadcast(-127.0f), x));
  const auto whole = round(bounded);
  const auto f = bounded - whole;
  auto p = broadcast(1.5353362e-4f);
  p = fma(p, f, broadcast(1.3333558e-3f));
  p = fma(p, f, broadcast(9.6181291e-3f));
  p = fma(p, f, broadcast(5.5504109e-2f));
  p = fma(p, f, broadcast(0.24022651f));
  p = fma(p, f, broadcast(0.69314718f));
  p = fma(p, f, broadcast(1.0f));
  const auto power =
      from_bits(int_shift_left<23>(int_add(to_int(whole), int_broadcast(127))));
  return p * power;
}

}  // namespace neuron::host_kernels::NEURON_ISA_NAMESPACE

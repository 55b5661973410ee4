// Vectors of fp32 lanes and their conversions, for the ISA that the including
// file names with NEURON_ISA (0 baseline, 1 avx2, 2 avx512, 3 avx512_bf16).
// Everything lives in that ISA's own namespace, so that the linker never
// merges code of different instruction sets.
#pragma once

namespace neuron::host_kernels::NEURON_ISA_NAMESPACE {

#if NEURON_ISA >= 2
#include "host_kernels/isa/vec_avx512.h"
#elif NEURON_ISA == 1
#include "host_kernels/isa/vec_avx2.h"
#else
#include "host_kernels/isa/vec_baseline.h"
#endif

inline F32 zero() { return broadcast(0.0f); }

inline F32 load(const c10::BFloat16* p) {
  return from_bits(int_shift_left<16>(load_u16(p)));
}

// Nearest even; a NaN stays one.
inline I32 bfloat16_bits(F32 a) {
  const auto bits = bits_of(a);
  const auto odd = int_and(int_shift_right<16>(bits), int_broadcast(1));
  const auto rounded =
      int_shift_right<16>(int_add(int_add(bits, int_broadcast(0x7fff)), odd));
  return int_select(is_nan(a), int_broadcast(0x7fc0), rounded);
}

inline void store(c10::BFloat16* p, F32 a) { store_u16(p, bfloat16_bits(a)); }

inline F32 load(const c10::Float8_e5m2* p) {
  return half_bits_to_float(int_shift_left<8>(load_u8(p)));
}

// As fp16 bits the exponent is 8 too small; the all-ones magnitude is NaN.
inline F32 load(const c10::Float8_e4m3fn* p) {
  const auto bits = load_u8(p);
  const auto magnitude = int_and(bits, int_broadcast(0x7f));
  const auto sign = int_shift_left<8>(int_and(bits, int_broadcast(0x80)));
  const auto half = int_or(sign, int_shift_left<7>(magnitude));
  return select(
      int_equal(magnitude, int_broadcast(0x7f)),
      broadcast(__builtin_nanf("")),
      half_bits_to_float(half) * broadcast(256.0f));
}

// The first `count` lanes; the others are zero.
template <class T>
inline F32 load_some(const T* p, int64_t count) {
  if (count >= kLanes) {
    return load(p);
  }
  alignas(64) char lanes[kLanes * sizeof(T)] = {};
  __builtin_memcpy(lanes, p, count > 0 ? count * sizeof(T) : 0);
  return load(reinterpret_cast<const T*>(lanes));
}

template <class T>
inline void store_some(T* p, F32 a, int64_t count) {
  if (count >= kLanes) {
    store(p, a);
    return;
  }
  alignas(64) char lanes[kLanes * sizeof(T)];
  store(reinterpret_cast<T*>(lanes), a);
  __builtin_memcpy(p, lanes, count > 0 ? count * sizeof(T) : 0);
}

}  // namespace neuron::host_kernels::NEURON_ISA_NAMESPACE

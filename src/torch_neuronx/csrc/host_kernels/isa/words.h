// The two contents of a 32-bit word of a packed panel: one fp32 value, or two
// bf16 values that are neighbours along k.
#pragma once

#include "host_kernels/isa/vec.h"

namespace neuron::host_kernels::NEURON_ISA_NAMESPACE {

struct Fp32Words {
  static constexpr int kSteps = 1;  // values along k in one word

  static F32 multiply_add(F32 a, F32 b, F32 sum) { return fma(a, b, sum); }

  // kLanes words of one row that is contiguous along k; `count` values exist.
  template <class T>
  static F32 along(const T* p, int64_t count) {
    return load_some(p, count);
  }

  // kLanes words of neighbouring rows at one k.
  template <class T>
  static F32 across(const T* p, const T*, int64_t count) {
    return load_some(p, count);
  }
};

#if NEURON_ISA == 3
struct Bf16PairWords {
  static constexpr int kSteps = 2;

  static F32 multiply_add(F32 a, F32 b, F32 sum) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
  }

  static __m256i narrow_exact(F32 a) {
    return _mm512_cvtepi32_epi16(int_shift_right<16>(bits_of(a)));
  }

  template <class T>
  static F32 along(const T* p, int64_t count) {
    const auto low = narrow_exact(load_some(p, count));
    const auto high = narrow_exact(load_some(p + kLanes, count - kLanes));
    return _mm512_castsi512_ps(
        _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
  }
  static F32 along(const c10::BFloat16* p, int64_t count) {
    const auto present = count >= 32  ? ~0u
                         : count <= 0 ? 0u
                                      : (1u << count) - 1;
    return _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(present, p));
  }

  // `next` is the same row one step further along k, or null past the end.
  template <class T>
  static F32 across(const T* p, const T* next, int64_t count) {
    const auto low = int_shift_right<16>(bits_of(load_some(p, count)));
    if (next == nullptr) {
      return from_bits(low);
    }
    const auto high = bits_of(load_some(next, count));
    return from_bits(int_or(low, int_and(high, int_broadcast(0xffff0000))));
  }
};
#endif

}  // namespace neuron::host_kernels::NEURON_ISA_NAMESPACE

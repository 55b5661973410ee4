// The two contents of a 32-bit word of a packed panel: one fp32 value, or two
// bf16 values that are neighbours along k.
#pragma once

#include "host_kernels/isa/vec.h"

namespace neuron::host_kernels::NEURON_ISA_NAMESPACE {

struct Fp32Words {
  using Value = float;
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
// The bf16 bits of all fp8 magnitudes; two lookups of 64 convert 32 values.
struct Float8Table {
  __m512i part[4];

  explicit Float8Table(const uint16_t (&bits)[128]) {
    for (int i = 0; i < 4; ++i) {
      part[i] = _mm512_loadu_si512(bits + 32 * i);
    }
  }

  F32 operator()(__m256i bytes) const {
    const auto wide = _mm512_cvtepu8_epi16(bytes);
    const auto low = _mm512_permutex2var_epi16(part[0], wide, part[1]);
    const auto high = _mm512_permutex2var_epi16(part[2], wide, part[3]);
    const auto upper = _mm512_test_epi16_mask(wide, _mm512_set1_epi16(0x40));
    const auto sign =
        _mm512_slli_epi16(_mm512_and_si512(wide, _mm512_set1_epi16(0x80)), 8);
    return from_bits(
        _mm512_or_si512(_mm512_mask_blend_epi16(upper, low, high), sign));
  }
};

template <class T>
struct Float8Bits {
  uint16_t bits[128];
  constexpr Float8Bits() : bits() {
    // Exponent bits and the bias of the format; e5m2 has infinities.
    constexpr bool e5m2 = __is_same(T, c10::Float8_e5m2);
    constexpr int mantissa_bits = e5m2 ? 2 : 3;
    constexpr int bias = e5m2 ? 15 : 7;
    for (int i = 0; i < 128; ++i) {
      int exponent = i >> mantissa_bits;
      int mantissa = i & ((1 << mantissa_bits) - 1);
      if (e5m2 && exponent == 31) {
        bits[i] = mantissa == 0 ? 0x7f80 : 0x7fc0;
      } else if (!e5m2 && i == 127) {
        bits[i] = 0x7fc0;
      } else if (i == 0) {
        bits[i] = 0;
      } else {
        exponent = exponent == 0 ? 1 : exponent;
        if (i >> mantissa_bits) {
          mantissa |= 1 << mantissa_bits;
        }
        while (!(mantissa >> mantissa_bits)) {
          mantissa <<= 1;
          --exponent;
        }
        mantissa &= (1 << mantissa_bits) - 1;
        bits[i] = static_cast<uint16_t>(
            (exponent - bias + 127) << 7 | mantissa << (7 - mantissa_bits));
      }
    }
  }
};

template <class T>
inline F32 float8_pairs(const T* p, int64_t count) {
  static constexpr Float8Bits<T> table;
  const auto present = count >= 32 ? ~0u : count <= 0 ? 0u : (1u << count) - 1;
  return Float8Table(table.bits)(_mm256_maskz_loadu_epi8(present, p));
}

struct Bf16PairWords {
  using Value = c10::BFloat16;
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
  static F32 along(const c10::Float8_e4m3fn* p, int64_t count) {
    return float8_pairs(p, count);
  }
  static F32 along(const c10::Float8_e5m2* p, int64_t count) {
    return float8_pairs(p, count);
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

// Sixteen fp32 lanes. Included inside the namespace of one ISA by vec.h.

using F32 = __m512;
using I32 = __m512i;
using Mask = __mmask16;
constexpr int kLanes = 16;

inline F32 broadcast(float x) { return _mm512_set1_ps(x); }
inline F32 fma(F32 a, F32 b, F32 c) { return _mm512_fmadd_ps(a, b, c); }
inline F32 max(F32 a, F32 b) { return _mm512_max_ps(a, b); }
inline F32 min(F32 a, F32 b) { return _mm512_min_ps(a, b); }
inline F32 sqrt(F32 a) { return _mm512_sqrt_ps(a); }
inline F32 abs(F32 a) { return _mm512_abs_ps(a); }
inline F32 round(F32 a) { return _mm512_roundscale_ps(a, 0); }
inline F32 floor(F32 a) { return _mm512_roundscale_ps(a, 1); }
inline F32 ceil(F32 a) { return _mm512_roundscale_ps(a, 2); }
inline F32 truncate(F32 a) { return _mm512_roundscale_ps(a, 3); }

inline I32 bits_of(F32 a) { return _mm512_castps_si512(a); }
inline F32 from_bits(I32 a) { return _mm512_castsi512_ps(a); }
inline I32 int_broadcast(int32_t x) { return _mm512_set1_epi32(x); }
inline I32 int_add(I32 a, I32 b) { return _mm512_add_epi32(a, b); }
inline I32 int_and(I32 a, I32 b) { return _mm512_and_si512(a, b); }
inline I32 int_or(I32 a, I32 b) { return _mm512_or_si512(a, b); }
template <int kBits>
inline I32 int_shift_left(I32 a) {
  return _mm512_slli_epi32(a, kBits);
}
template <int kBits>
inline I32 int_shift_right(I32 a) {
  return _mm512_srli_epi32(a, kBits);
}
inline I32 to_int(F32 a) { return _mm512_cvtps_epi32(a); }

inline Mask is_nan(F32 a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
inline Mask less(F32 a, F32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
inline Mask less_equal(F32 a, F32 b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ);
}
inline Mask equal(F32 a, F32 b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
inline Mask int_equal(I32 a, I32 b) { return _mm512_cmpeq_epi32_mask(a, b); }
inline F32 select(Mask m, F32 yes, F32 no) {
  return _mm512_mask_blend_ps(m, no, yes);
}
inline I32 int_select(Mask m, I32 yes, I32 no) {
  return _mm512_mask_blend_epi32(m, no, yes);
}

inline F32 load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, F32 a) { _mm512_storeu_ps(p, a); }

inline I32 load_u8(const void* p) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
inline I32 load_u16(const void* p) {
  return _mm512_cvtepu16_epi32(
      _mm256_loadu_si256(static_cast<const __m256i*>(p)));
}
inline void store_u16(void* p, I32 a) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtepi32_epi16(a));
}
inline void store_u8(void* p, I32 a) {
  _mm_storeu_si128(static_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a));
}
inline F32 load(const int8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
inline F32 load(const c10::Half* p) {
  return _mm512_cvtph_ps(
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline F32 half_bits_to_float(I32 a) {
  return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(a));
}
inline void store(c10::Half* p, F32 a) {
  _mm256_storeu_si256(
      reinterpret_cast<__m256i*>(p),
      _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

inline float sum(F32 a) { return _mm512_reduce_add_ps(a); }
inline float largest(F32 a) { return _mm512_reduce_max_ps(a); }

// rows[i][j] becomes rows[j][i].
inline void transpose(F32 (&rows)[kLanes]) {
  __m512 t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
  }
  // Column c of a 4x4 block: r[4 * block + c].
  __m512 r[16];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[4 * i] = _mm512_castpd_ps(
        _mm512_unpacklo_pd((__m512d)t[4 * i], (__m512d)t[4 * i + 2]));
    r[4 * i + 1] = _mm512_castpd_ps(
        _mm512_unpackhi_pd((__m512d)t[4 * i], (__m512d)t[4 * i + 2]));
    r[4 * i + 2] = _mm512_castpd_ps(
        _mm512_unpacklo_pd((__m512d)t[4 * i + 1], (__m512d)t[4 * i + 3]));
    r[4 * i + 3] = _mm512_castpd_ps(
        _mm512_unpackhi_pd((__m512d)t[4 * i + 1], (__m512d)t[4 * i + 3]));
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const auto low01 = _mm512_shuffle_f32x4(r[c], r[4 + c], 0x88);
    const auto high01 = _mm512_shuffle_f32x4(r[c], r[4 + c], 0xdd);
    const auto low23 = _mm512_shuffle_f32x4(r[8 + c], r[12 + c], 0x88);
    const auto high23 = _mm512_shuffle_f32x4(r[8 + c], r[12 + c], 0xdd);
    rows[c] = _mm512_shuffle_f32x4(low01, low23, 0x88);
    rows[8 + c] = _mm512_shuffle_f32x4(low01, low23, 0xdd);
    rows[4 + c] = _mm512_shuffle_f32x4(high01, high23, 0x88);
    rows[12 + c] = _mm512_shuffle_f32x4(high01, high23, 0xdd);
  }
}

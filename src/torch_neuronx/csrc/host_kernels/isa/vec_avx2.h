// Eight fp32 lanes. Included inside the namespace of one ISA by vec.h.

using F32 = __m256;
using I32 = __m256i;
using Mask = __m256;
constexpr int kLanes = 8;

inline F32 broadcast(float x) { return _mm256_set1_ps(x); }
inline F32 fma(F32 a, F32 b, F32 c) { return _mm256_fmadd_ps(a, b, c); }
inline F32 max(F32 a, F32 b) { return _mm256_max_ps(a, b); }
inline F32 min(F32 a, F32 b) { return _mm256_min_ps(a, b); }
inline F32 sqrt(F32 a) { return _mm256_sqrt_ps(a); }
inline F32 abs(F32 a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
inline F32 round(F32 a) { return _mm256_round_ps(a, 8); }
inline F32 floor(F32 a) { return _mm256_round_ps(a, 9); }
inline F32 ceil(F32 a) { return _mm256_round_ps(a, 10); }
inline F32 truncate(F32 a) { return _mm256_round_ps(a, 11); }

inline I32 bits_of(F32 a) { return _mm256_castps_si256(a); }
inline F32 from_bits(I32 a) { return _mm256_castsi256_ps(a); }
inline I32 int_broadcast(int32_t x) { return _mm256_set1_epi32(x); }
inline I32 int_add(I32 a, I32 b) { return _mm256_add_epi32(a, b); }
inline I32 int_and(I32 a, I32 b) { return _mm256_and_si256(a, b); }
inline I32 int_or(I32 a, I32 b) { return _mm256_or_si256(a, b); }
template <int kBits>
inline I32 int_shift_left(I32 a) {
  return _mm256_slli_epi32(a, kBits);
}
template <int kBits>
inline I32 int_shift_right(I32 a) {
  return _mm256_srli_epi32(a, kBits);
}
inline I32 to_int(F32 a) { return _mm256_cvtps_epi32(a); }

inline Mask is_nan(F32 a) { return _mm256_cmp_ps(a, a, _CMP_UNORD_Q); }
inline Mask less(F32 a, F32 b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
inline Mask less_equal(F32 a, F32 b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
inline Mask equal(F32 a, F32 b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
inline Mask int_equal(I32 a, I32 b) {
  return from_bits(_mm256_cmpeq_epi32(a, b));
}
inline F32 select(Mask m, F32 yes, F32 no) {
  return _mm256_blendv_ps(no, yes, m);
}
inline I32 int_select(Mask m, I32 yes, I32 no) {
  return bits_of(select(m, from_bits(yes), from_bits(no)));
}

inline F32 load(const float* p) { return _mm256_loadu_ps(p); }
inline void store(float* p, F32 a) { _mm256_storeu_ps(p, a); }

inline I32 load_u8(const void* p) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p)));
}
inline I32 load_u16(const void* p) {
  return _mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
// The low 16 bits of each lane; the high ones must be zero.
inline __m128i narrow(I32 a) {
  const auto packed = _mm256_packus_epi32(a, a);
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08));
}
inline void store_u16(void* p, I32 a) {
  _mm_storeu_si128(static_cast<__m128i*>(p), narrow(a));
}
inline void store_u8(void* p, I32 a) {
  const auto words = narrow(a);
  _mm_storel_epi64(static_cast<__m128i*>(p), _mm_packus_epi16(words, words));
}
inline F32 load(const int8_t* p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(
      _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
inline F32 load(const c10::Half* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline F32 half_bits_to_float(I32 a) { return _mm256_cvtph_ps(narrow(a)); }
inline void store(c10::Half* p, F32 a) {
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(p),
      _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

inline float sum(F32 a) {
  auto x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  x = _mm_add_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}
inline float largest(F32 a) {
  auto x = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  x = _mm_max_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}

// rows[i][j] becomes rows[j][i].
inline void transpose(F32 (&rows)[kLanes]) {
  __m256 t[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[2 * i] = _mm256_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
  }
  __m256 r[8];
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    r[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
    r[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
    r[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
    r[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    rows[c] = _mm256_permute2f128_ps(r[c], r[4 + c], 0x20);
    rows[4 + c] = _mm256_permute2f128_ps(r[c], r[4 + c], 0x31);
  }
}

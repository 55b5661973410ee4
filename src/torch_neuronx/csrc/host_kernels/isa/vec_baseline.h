// Four fp32 lanes in the compiler's own vectors: any processor. Included
// inside the namespace of one ISA by vec.h.

typedef float F32 __attribute__((vector_size(16)));
typedef int32_t I32 __attribute__((vector_size(16)));
using Mask = I32;
constexpr int kLanes = 4;

template <class Function>
inline F32 each_lane(Function function) {
  return F32{function(0), function(1), function(2), function(3)};
}

inline F32 broadcast(float x) { return F32{x, x, x, x}; }
inline F32 fma(F32 a, F32 b, F32 c) { return a * b + c; }
inline F32 max(F32 a, F32 b) { return a > b ? a : b; }
inline F32 min(F32 a, F32 b) { return a < b ? a : b; }
inline F32 sqrt(F32 a) {
  return each_lane([&](int i) { return __builtin_sqrtf(a[i]); });
}
inline F32 abs(F32 a) {
  return each_lane([&](int i) { return __builtin_fabsf(a[i]); });
}
inline F32 round(F32 a) {
  return each_lane([&](int i) { return __builtin_nearbyintf(a[i]); });
}
inline F32 floor(F32 a) {
  return each_lane([&](int i) { return __builtin_floorf(a[i]); });
}
inline F32 ceil(F32 a) {
  return each_lane([&](int i) { return __builtin_ceilf(a[i]); });
}
inline F32 truncate(F32 a) {
  return each_lane([&](int i) { return __builtin_truncf(a[i]); });
}

inline I32 bits_of(F32 a) { return (I32)a; }
inline F32 from_bits(I32 a) { return (F32)a; }
inline I32 int_broadcast(int32_t x) { return I32{x, x, x, x}; }
inline I32 int_add(I32 a, I32 b) {
  typedef uint32_t U32 __attribute__((vector_size(16)));
  return (I32)((U32)a + (U32)b);
}
inline I32 int_and(I32 a, I32 b) { return a & b; }
inline I32 int_or(I32 a, I32 b) { return a | b; }
template <int kBits>
inline I32 int_shift_left(I32 a) {
  return a << kBits;
}
template <int kBits>
inline I32 int_shift_right(I32 a) {
  typedef uint32_t U32 __attribute__((vector_size(16)));
  return (I32)((U32)a >> kBits);
}
inline I32 to_int(F32 a) { return __builtin_convertvector(round(a), I32); }

inline Mask is_nan(F32 a) { return a != a; }
inline Mask less(F32 a, F32 b) { return a < b; }
inline Mask less_equal(F32 a, F32 b) { return a <= b; }
inline Mask equal(F32 a, F32 b) { return a == b; }
inline Mask int_equal(I32 a, I32 b) { return a == b; }
inline F32 select(Mask m, F32 yes, F32 no) { return m ? yes : no; }
inline I32 int_select(Mask m, I32 yes, I32 no) { return m ? yes : no; }

inline F32 load(const float* p) {
  F32 a;
  __builtin_memcpy(&a, p, sizeof(a));
  return a;
}
inline void store(float* p, F32 a) { __builtin_memcpy(p, &a, sizeof(a)); }

template <class Word>
inline I32 load_words(const void* p) {
  Word words[4];
  __builtin_memcpy(words, p, sizeof(words));
  return I32{words[0], words[1], words[2], words[3]};
}
inline I32 load_u8(const void* p) { return load_words<uint8_t>(p); }
inline I32 load_u16(const void* p) { return load_words<uint16_t>(p); }
template <class Word>
inline void store_words(void* p, I32 a) {
  const Word words[4] = {Word(a[0]), Word(a[1]), Word(a[2]), Word(a[3])};
  __builtin_memcpy(p, words, sizeof(words));
}
inline void store_u8(void* p, I32 a) { store_words<uint8_t>(p, a); }
inline void store_u16(void* p, I32 a) { store_words<uint16_t>(p, a); }
inline F32 load(const int8_t* p) {
  return __builtin_convertvector(load_words<int8_t>(p), F32);
}
inline F32 half_bits_to_float(I32 a) {
  return each_lane([&](int i) {
    return c10::detail::fp16_ieee_to_fp32_value(static_cast<uint16_t>(a[i]));
  });
}
inline F32 load(const c10::Half* p) { return half_bits_to_float(load_u16(p)); }
inline void store(c10::Half* p, F32 a) {
  for (int i = 0; i < kLanes; ++i) {
    p[i] = c10::Half(a[i]);
  }
}

inline float sum(F32 a) { return (a[0] + a[1]) + (a[2] + a[3]); }
inline float largest(F32 a) {
  const float x = a[0] > a[1] ? a[0] : a[1];
  const float y = a[2] > a[3] ? a[2] : a[3];
  return x > y ? x : y;
}

// rows[i][j] becomes rows[j][i].
inline void transpose(F32 (&rows)[kLanes]) {
  for (int i = 0; i < kLanes; ++i) {
    for (int j = i + 1; j < kLanes; ++j) {
      const float moved = rows[i][j];
      rows[i][j] = rows[j][i];
      rows[j][i] = moved;
    }
  }
}

// Stored elements to fp32 and back, a row at a time. Included once per
// instruction set, inside that set's namespace.

inline float bits_to_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline uint32_t float_to_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline uint16_t to_bfloat16(float value) {
  const uint32_t bits = float_to_bits(value);
  const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x40u;
  const bool nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  return static_cast<uint16_t>(nan ? quiet : rounded);
}

// A small float: sign, exponent, mantissa; `finite` formats have no infinity.
struct SmallFormat {
  int exponent_bits, mantissa_bits, bias;
  bool finite;
};

constexpr SmallFormat format_of(Type type) {
  switch (type) {
    case Type::float16:
      return {5, 10, 15, false};
    case Type::float8_e5m2:
      return {5, 2, 15, false};
    case Type::float8_e4m3fn:
      return {4, 3, 7, true};
    default:
      return {4, 3, 7, false};
  }
}

inline float from_small(uint32_t code, SmallFormat f) {
  const uint32_t mantissa = code & ((1u << f.mantissa_bits) - 1);
  const uint32_t top = (1u << f.exponent_bits) - 1;
  const uint32_t exponent = (code >> f.mantissa_bits) & top;
  const float sign =
      (code >> (f.mantissa_bits + f.exponent_bits)) & 1u ? -1.0f : 1.0f;
  const uint32_t full = (1u << f.mantissa_bits) - 1;
  if (exponent == top && !f.finite)
    return mantissa ? bits_to_float(0x7FC00000u)
                    : sign * std::numeric_limits<float>::infinity();
  if (exponent == top && mantissa == full)
    return bits_to_float(0x7FC00000u);
  const float scale = static_cast<float>(1 << f.mantissa_bits);
  if (exponent == 0)
    return sign * std::ldexp(static_cast<float>(mantissa) / scale, 1 - f.bias);
  return sign * std::ldexp(
                    1.0f + static_cast<float>(mantissa) / scale,
                    static_cast<int>(exponent) - f.bias);
}

// Round to nearest even; overflow gives infinity, or NaN where there is none.
inline uint32_t to_small(float value, SmallFormat f) {
  const uint32_t bits = float_to_bits(value);
  const uint32_t sign = (bits >> 31) << (f.exponent_bits + f.mantissa_bits);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  const uint32_t top = ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
  const uint32_t nan = top | (f.finite ? (1u << f.mantissa_bits) - 1
                                       : 1u << (f.mantissa_bits - 1));
  if (magnitude > 0x7F800000u)
    return sign | nan;
  const uint32_t overflow = f.finite ? nan : top;
  if (magnitude == 0x7F800000u)
    return sign | overflow;
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  const int lowest = 1 - f.bias;
  // Bits of the fp32 mantissa that fall away; more for denormal results.
  int drop = 23 - f.mantissa_bits;
  if (exponent < lowest)
    drop += lowest - exponent;
  if (drop > 24)
    return sign;
  const uint32_t mantissa = magnitude >= 0x00800000u
                                ? (magnitude & 0x7FFFFFu) | 0x800000u
                                : magnitude & 0x7FFFFFu;
  uint32_t kept = mantissa >> drop;
  const uint32_t rest = mantissa & ((1u << drop) - 1);
  const uint32_t half = 1u << (drop - 1);
  if (rest > half || (rest == half && (kept & 1u)))
    ++kept;
  uint32_t code = exponent < lowest
                      ? kept
                      : kept + (static_cast<uint32_t>(exponent - lowest)
                                << f.mantissa_bits);
  if (code >= (f.finite ? nan : top))
    code = overflow;
  return sign | code;
}

inline float round_tfloat32(float value) {
  const uint32_t bits = float_to_bits(value);
  if ((bits & 0x7F800000u) == 0x7F800000u)
    return value;
  return bits_to_float((bits + 0xFFFu + ((bits >> 13) & 1u)) & 0xFFFFE000u);
}

template <class T>
inline void load_as(float* out, const char* in, int64_t stride, int64_t n) {
  if (stride == static_cast<int64_t>(sizeof(T))) {
    const T* row = reinterpret_cast<const T*>(in);
    for (int64_t i = 0; i < n; ++i)
      out[i] = static_cast<float>(row[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      T value;
      std::memcpy(&value, in + i * stride, sizeof value);
      out[i] = static_cast<float>(value);
    }
  }
}

inline void load_row(
    float* out, Type type, const char* in, int64_t stride, int64_t n) {
  switch (type) {
    case Type::float32:
    case Type::tfloat32:
      return load_as<float>(out, in, stride, n);
    case Type::bfloat16:
      if (stride == 2) {
        const uint16_t* row = reinterpret_cast<const uint16_t*>(in);
        uint32_t* bits = reinterpret_cast<uint32_t*>(out);
        for (int64_t i = 0; i < n; ++i)
          bits[i] = static_cast<uint32_t>(row[i]) << 16;
      } else {
        for (int64_t i = 0; i < n; ++i) {
          uint16_t value;
          std::memcpy(&value, in + i * stride, 2);
          out[i] = bits_to_float(static_cast<uint32_t>(value) << 16);
        }
      }
      return;
    case Type::int32:
      return load_as<int32_t>(out, in, stride, n);
    case Type::uint32:
      return load_as<uint32_t>(out, in, stride, n);
    case Type::uint8:
      return load_as<uint8_t>(out, in, stride, n);
    case Type::int8:
      return load_as<int8_t>(out, in, stride, n);
    case Type::int16:
      return load_as<int16_t>(out, in, stride, n);
    case Type::uint16:
      return load_as<uint16_t>(out, in, stride, n);
    case Type::float16:
      for (int64_t i = 0; i < n; ++i) {
        uint16_t code;
        std::memcpy(&code, in + i * stride, 2);
        out[i] = from_small(code, format_of(type));
      }
      return;
    default:
      for (int64_t i = 0; i < n; ++i)
        out[i] =
            from_small(static_cast<uint8_t>(in[i * stride]), format_of(type));
  }
}

template <class T>
inline void store_integers(
    char* out, int64_t stride, const float* in, int64_t n) {
  constexpr double low = std::numeric_limits<T>::min();
  constexpr double high = std::numeric_limits<T>::max();
  for (int64_t i = 0; i < n; ++i) {
    double value = std::nearbyint(static_cast<double>(in[i]));
    value = value > low ? value : low;  // NaN becomes low here and 0 below
    value = value < high ? value : high;
    const T cast = in[i] == in[i] ? static_cast<T>(value) : T{0};
    std::memcpy(out + i * stride, &cast, sizeof cast);
  }
}

inline void store_row(
    char* out, Type type, int64_t stride, const float* in, int64_t n) {
  switch (type) {
    case Type::float32:
      if (stride == 4) {
        std::memmove(out, in, static_cast<size_t>(n) * 4);
      } else {
        for (int64_t i = 0; i < n; ++i)
          std::memcpy(out + i * stride, in + i, 4);
      }
      return;
    case Type::tfloat32:
      for (int64_t i = 0; i < n; ++i) {
        const float value = round_tfloat32(in[i]);
        std::memcpy(out + i * stride, &value, 4);
      }
      return;
    case Type::bfloat16:
      if (stride == 2) {
        uint16_t* row = reinterpret_cast<uint16_t*>(out);
        for (int64_t i = 0; i < n; ++i)
          row[i] = to_bfloat16(in[i]);
      } else {
        for (int64_t i = 0; i < n; ++i) {
          const uint16_t value = to_bfloat16(in[i]);
          std::memcpy(out + i * stride, &value, 2);
        }
      }
      return;
    case Type::int32:
      return store_integers<int32_t>(out, stride, in, n);
    case Type::uint32:
      return store_integers<uint32_t>(out, stride, in, n);
    case Type::uint8:
      return store_integers<uint8_t>(out, stride, in, n);
    case Type::int8:
      return store_integers<int8_t>(out, stride, in, n);
    case Type::int16:
      return store_integers<int16_t>(out, stride, in, n);
    case Type::uint16:
      return store_integers<uint16_t>(out, stride, in, n);
    case Type::float16:
      for (int64_t i = 0; i < n; ++i) {
        const uint16_t code =
            static_cast<uint16_t>(to_small(in[i], format_of(type)));
        std::memcpy(out + i * stride, &code, 2);
      }
      return;
    default:
      for (int64_t i = 0; i < n; ++i)
        out[i * stride] = static_cast<char>(to_small(in[i], format_of(type)));
  }
}

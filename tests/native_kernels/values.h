// Arrays of any dtype with access as double, for reference computations.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e5m2.h>
#include <c10/util/Half.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace neuron::test {

using c10::ScalarType;

struct Values {
  ScalarType dtype;
  std::vector<char> bytes;

  Values(ScalarType dtype, int64_t count)
      : dtype(dtype), bytes(count * c10::elementSize(dtype)) {}

  void* data() { return bytes.data(); }
  const void* data() const { return bytes.data(); }
  int64_t size() const { return bytes.size() / c10::elementSize(dtype); }

  template <class T>
  T& as(int64_t i) {
    return reinterpret_cast<T*>(bytes.data())[i];
  }
  template <class T>
  const T& as(int64_t i) const {
    return reinterpret_cast<const T*>(bytes.data())[i];
  }

  double get(int64_t i) const {
    switch (dtype) {
      case ScalarType::Float:
        return as<float>(i);
      case ScalarType::BFloat16:
        return float(as<c10::BFloat16>(i));
      case ScalarType::Half:
        return float(as<c10::Half>(i));
      case ScalarType::Float8_e4m3fn:
        return float(as<c10::Float8_e4m3fn>(i));
      case ScalarType::Float8_e5m2:
        return float(as<c10::Float8_e5m2>(i));
      case ScalarType::Char:
        return as<int8_t>(i);
      default:
        std::abort();
    }
  }

  void set(int64_t i, double value) {
    const auto x = static_cast<float>(value);
    switch (dtype) {
      case ScalarType::Float:
        as<float>(i) = x;
        break;
      case ScalarType::BFloat16:
        as<c10::BFloat16>(i) = c10::BFloat16(x);
        break;
      case ScalarType::Half:
        as<c10::Half>(i) = c10::Half(x);
        break;
      case ScalarType::Float8_e4m3fn:
        as<c10::Float8_e4m3fn>(i) = c10::Float8_e4m3fn(x);
        break;
      case ScalarType::Float8_e5m2:
        as<c10::Float8_e5m2>(i) = c10::Float8_e5m2(x);
        break;
      case ScalarType::Char:
        as<int8_t>(i) = static_cast<int8_t>(std::lrint(value * 20));
        break;
      default:
        std::abort();
    }
  }

  Values& fill(std::mt19937& random, double scale = 1.0) {
    std::normal_distribution<double> normal(0.0, scale);
    for (int64_t i = 0; i < size(); ++i) {
      set(i, normal(random));
    }
    return *this;
  }
};

// Distance between neighbouring values of dtype around x.
inline double spacing(ScalarType dtype, double x) {
  const int digits = dtype == ScalarType::Float  ? 23
                     : dtype == ScalarType::Half ? 10
                                                 : 7;
  const int smallest = dtype == ScalarType::Half ? -14 : -126;
  int exponent = smallest;
  if (x != 0 && std::isfinite(x)) {
    exponent = std::max(std::ilogb(x), smallest);
  }
  return std::ldexp(1.0, exponent - digits);
}

// Whether got is `wanted` rounded once to dtype, up to `error` before rounding.
inline bool rounds_to(
    ScalarType dtype, double got, double wanted, double error) {
  if (std::isnan(wanted)) {
    return std::isnan(got);
  }
  if (std::isinf(wanted) || std::isinf(got)) {
    return got == wanted ||
           (dtype == ScalarType::Half && std::abs(wanted) > 65519 - error);
  }
  return std::abs(got - wanted) <= 0.5001 * spacing(dtype, wanted) + error;
}

}  // namespace neuron::test

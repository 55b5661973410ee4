#include "host_kernels/random.h"

#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "host_kernels/philox.h"

namespace neuron::host_kernels {
namespace {

constexpr int64_t kGrain = 4096;
constexpr double kTwoPi = 6.283185307179586;

template <class T>
constexpr bool is_wide = sizeof(T) == 8;

// Calls store(i, random) for each element: random is a 32-bit number, or a
// 64-bit one for 8-byte elements.
template <class T, class F>
void for_each_draw(const RandomOutput& out, F&& store) {
  constexpr int64_t per_block = is_wide<T> ? 2 : 4;
  const int64_t blocks = (out.count + per_block - 1) / per_block;
  const uint64_t first = out.offset / 4;
  at::parallel_for(0, blocks, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const auto draw = philox(out.seed, first + static_cast<uint64_t>(block));
      const int64_t start = block * per_block;
      const int64_t stop = std::min(out.count, start + per_block);
      for (int64_t i = start; i < stop; ++i) {
        const auto lane = static_cast<size_t>(i - start);
        if constexpr (is_wide<T>) {
          store(i, uint64_t{draw[2 * lane]} << 32 | draw[2 * lane + 1]);
        } else {
          store(i, draw[lane]);
        }
      }
    }
  });
}

template <class T>
using Wide = std::conditional_t<is_wide<T>, double, float>;

// [0, 1) with `digits` random bits.
template <class W, class Bits>
W unit(Bits random, int digits) {
  constexpr int width = static_cast<int>(sizeof(Bits) * 8);
  return static_cast<W>(random >> (width - digits)) * std::ldexp(W{1}, -digits);
}

// (0, 1], safe for a logarithm.
template <class W, class Bits>
W positive_unit(Bits random) {
  constexpr int digits = std::min(
      std::numeric_limits<W>::digits, static_cast<int>(sizeof(Bits) * 8));
  return W{1} - unit<W>(random, digits);
}

template <class F>
void for_floating(c10::ScalarType dtype, F&& body) {
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kBFloat16, at::kHalf, dtype, "random floats", [&] {
        body(scalar_t{});
      });
}

template <class F>
void for_any(c10::ScalarType dtype, F&& body) {
  AT_DISPATCH_V2(
      dtype,
      "random numbers",
      AT_WRAP([&] { body(scalar_t{}); }),
      AT_EXPAND(AT_ALL_TYPES),
      AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES),
      at::kBFloat16,
      at::kHalf,
      at::kBool);
}

// Elements that are a function of one draw each.
template <class F>
void transform(const RandomOutput& out, F&& value) {
  for_floating(out.dtype, [&](auto tag) {
    using T = decltype(tag);
    auto* data = static_cast<T*>(out.data);
    for_each_draw<T>(out, [&](int64_t i, auto random) {
      data[i] = static_cast<T>(value(positive_unit<Wide<T>>(random)));
    });
  });
}

// Pairs of normal numbers from pairs of draws (Box and Muller).
template <class T, class F>
void for_each_normal(const RandomOutput& out, F&& store) {
  using W = Wide<T>;
  constexpr int64_t per_block = is_wide<T> ? 2 : 4;
  const int64_t blocks = (out.count + per_block - 1) / per_block;
  const uint64_t first = out.offset / 4;
  at::parallel_for(0, blocks, kGrain / 4, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const auto draw = philox(out.seed, first + static_cast<uint64_t>(block));
      std::array<W, static_cast<size_t>(per_block)> normals;
      for (size_t pair = 0; pair < normals.size(); pair += 2) {
        W radius;
        W angle;
        if constexpr (is_wide<T>) {
          const uint64_t a = uint64_t{draw[0]} << 32 | draw[1];
          const uint64_t b = uint64_t{draw[2]} << 32 | draw[3];
          radius = std::sqrt(W{-2} * std::log(positive_unit<W>(a)));
          angle = W{kTwoPi} * positive_unit<W>(b);
        } else {
          radius = std::sqrt(W{-2} * std::log(positive_unit<W>(draw[pair])));
          angle = static_cast<W>(kTwoPi) * positive_unit<W>(draw[pair + 1]);
        }
        normals[pair] = radius * std::cos(angle);
        normals[pair + 1] = radius * std::sin(angle);
      }
      const int64_t start = block * per_block;
      const int64_t stop = std::min(out.count, start + per_block);
      for (int64_t i = start; i < stop; ++i) {
        store(i, normals[static_cast<size_t>(i - start)]);
      }
    }
  });
}

}  // namespace

uint64_t draws_for(c10::ScalarType dtype, int64_t count) {
  const auto numbers = static_cast<uint64_t>(count);
  return c10::elementSize(dtype) == 8 ? 2 * numbers : numbers;
}

void uniform(const RandomOutput& out, double from, double to) {
  for_floating(out.dtype, [&](auto tag) {
    using T = decltype(tag);
    using W = Wide<T>;
    auto* data = static_cast<T*>(out.data);
    const auto low = static_cast<W>(from);
    const auto width = static_cast<W>(to) - low;
    for_each_draw<T>(out, [&](int64_t i, auto random) {
      constexpr int digits = std::numeric_limits<T>::digits;
      data[i] = static_cast<T>(unit<W>(random, digits) * width + low);
    });
  });
}

void normal(const RandomOutput& out, double mean, double std) {
  for_floating(out.dtype, [&](auto tag) {
    using T = decltype(tag);
    auto* data = static_cast<T*>(out.data);
    for_each_normal<T>(out, [&](int64_t i, auto value) {
      using W = decltype(value);
      data[i] =
          static_cast<T>(value * static_cast<W>(std) + static_cast<W>(mean));
    });
  });
}

void log_normal(const RandomOutput& out, double mean, double std) {
  for_floating(out.dtype, [&](auto tag) {
    using T = decltype(tag);
    auto* data = static_cast<T*>(out.data);
    for_each_normal<T>(out, [&](int64_t i, auto value) {
      using W = decltype(value);
      data[i] = static_cast<T>(
          std::exp(value * static_cast<W>(std) + static_cast<W>(mean)));
    });
  });
}

void exponential(const RandomOutput& out, double lambda) {
  transform(out, [&](auto u) {
    return -std::log(u) / static_cast<decltype(u)>(lambda);
  });
}

void cauchy(const RandomOutput& out, double median, double sigma) {
  transform(out, [&](auto u) {
    using W = decltype(u);
    constexpr W pi = static_cast<W>(kTwoPi / 2);
    return static_cast<W>(median) +
           static_cast<W>(sigma) * std::tan(pi * (u - W{0.5}));
  });
}

void geometric(const RandomOutput& out, double p) {
  for_any(out.dtype, [&](auto tag) {
    using T = decltype(tag);
    auto* data = static_cast<T*>(out.data);
    const double scale = 1 / std::log1p(-p);
    for_each_draw<T>(out, [&](int64_t i, auto random) {
      data[i] = static_cast<T>(std::max(
          1.0, std::ceil(std::log(positive_unit<double>(random)) * scale)));
    });
  });
}

void bernoulli(const RandomOutput& out, double p) {
  for_any(out.dtype, [&](auto tag) {
    using T = decltype(tag);
    auto* data = static_cast<T*>(out.data);
    for_each_draw<T>(out, [&](int64_t i, auto random) {
      constexpr int width = static_cast<int>(sizeof(random) * 8);
      data[i] = static_cast<T>(unit<double>(random, std::min(width, 53)) < p);
    });
  });
}

void bernoulli(const RandomOutput& out, const double* p) {
  for_any(out.dtype, [&](auto tag) {
    using T = decltype(tag);
    auto* data = static_cast<T*>(out.data);
    for_each_draw<T>(out, [&](int64_t i, auto random) {
      constexpr int width = static_cast<int>(sizeof(random) * 8);
      data[i] =
          static_cast<T>(unit<double>(random, std::min(width, 53)) < p[i]);
    });
  });
}

void integers(const RandomOutput& out, uint64_t range, int64_t base) {
  // A range of more than 32 bits needs 64-bit draws whatever the dtype.
  const bool wide = range == 0 || range > (uint64_t{1} << 32);
  for_any(out.dtype, [&](auto tag) {
    using T = decltype(tag);
    auto* data = static_cast<T*>(out.data);
    auto store = [&](int64_t i, uint64_t random) {
      const uint64_t value = range == 0 ? random : random % range;
      data[i] = static_cast<T>(
          static_cast<int64_t>(value + static_cast<uint64_t>(base)));
    };
    if (wide || is_wide<T>) {
      for_each_draw<int64_t>(out, store);
    } else {
      for_each_draw<T>(out, store);
    }
  });
}

void dropout(const RandomOutput& out, const void* input, bool* mask, double p) {
  for_floating(out.dtype, [&](auto tag) {
    using T = decltype(tag);
    using W = Wide<T>;
    auto* data = static_cast<T*>(out.data);
    const auto* from = static_cast<const T*>(input);
    const auto scale = static_cast<W>(p >= 1 ? 0 : 1 / (1 - p));
    for_each_draw<T>(out, [&](int64_t i, auto random) {
      constexpr int width = static_cast<int>(sizeof(random) * 8);
      const bool keep = unit<double>(random, std::min(width, 53)) >= p;
      mask[i] = keep;
      data[i] = static_cast<T>(static_cast<W>(from[i]) * (keep ? scale : W{0}));
    });
  });
}

}  // namespace neuron::host_kernels

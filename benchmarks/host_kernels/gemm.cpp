// Rates of gemm() beside the host's own peaks: fp32 sgemm of the BLAS that
// torch ships, and a copy. Interleaved, medians.
#include "host_kernels/gemm.h"

#include <ATen/Parallel.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "host_kernels/isa.h"
#include "timing.h"

extern "C" void sgemm_(
    const char*,
    const char*,
    const int*,
    const int*,
    const int*,
    const float*,
    const float*,
    const int*,
    const float*,
    const int*,
    const float*,
    float*,
    const int*);

namespace neuron::bench {
namespace {

using c10::ScalarType;
using host_kernels::GemmArgs;

std::vector<char> fill(ScalarType dtype, int64_t count) {
  std::vector<char> bytes(count * c10::elementSize(dtype));
  // Small normal numbers in every dtype.
  const auto size = c10::elementSize(dtype);
  for (int64_t i = 0; i < count; ++i) {
    const float x = 0.25f + 0.001f * float(i % 97);
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    if (dtype == ScalarType::Float) {
      std::memcpy(&bytes[i * size], &x, 4);
    } else if (dtype == ScalarType::BFloat16) {
      const uint16_t word = bits >> 16;
      std::memcpy(&bytes[i * size], &word, 2);
    } else if (dtype == ScalarType::Half) {
      const uint16_t word = 0x3400 + i % 97;
      std::memcpy(&bytes[i * size], &word, 2);
    } else {
      bytes[i] = 0x28 + i % 8;
    }
  }
  return bytes;
}

struct Product {
  ScalarType dtype;
  bool b_transposed;
  std::vector<char> a, b, out;
  GemmArgs args;

  Product(ScalarType dtype, int64_t m, int64_t n, int64_t k, bool transposed)
      : dtype(dtype),
        b_transposed(transposed),
        a(fill(dtype, m * k)),
        b(fill(dtype, k * n)) {
    const auto result = dtype == ScalarType::Float || dtype == ScalarType::Half
                            ? dtype
                            : ScalarType::BFloat16;
    out.resize(m * n * c10::elementSize(result));
    args = {
        1,
        m,
        n,
        k,
        {a.data(), dtype, 0, k, 1},
        {b.data(), dtype, 0, n, 1},
        {out.data(), result, 0, n, 1}};
    if (transposed) {
      args.b.row_stride = 1;
      args.b.column_stride = k;
    }
  }
  void run() { host_kernels::gemm(args); }
};

constexpr ScalarType kDtypes[] = {
    ScalarType::Float,
    ScalarType::BFloat16,
    ScalarType::Half,
    ScalarType::Float8_e4m3fn,
    ScalarType::Float8_e5m2};

void square(int size) {
  std::vector<float> a(size * size, 0.5f), b(size * size, 0.25f),
      c(size * size);
  std::vector<Product> products;
  std::vector<std::function<void()>> runs = {[&] {
    const float one = 1, none = 0;
    sgemm_(
        "N",
        "N",
        &size,
        &size,
        &size,
        &one,
        a.data(),
        &size,
        b.data(),
        &size,
        &none,
        c.data(),
        &size);
  }};
  for (const bool transposed : {false, true}) {
    for (const auto dtype : kDtypes) {
      products.emplace_back(dtype, size, size, size, transposed);
    }
  }
  for (auto& product : products) {
    runs.push_back([&] { product.run(); });
  }
  const auto seconds = interleaved(runs, size <= 1024 ? 7 : 3);
  const double work = 2.0 * size * size * size * 1e-9;
  std::printf("%5d^3  sgemm %6.1f GFLOP/s", size, work / seconds[0]);
  for (size_t i = 0; i < products.size(); ++i) {
    std::printf(
        "%s %s%s %.1f (%.0f%%)",
        i % 5 ? "," : "\n       ",
        c10::toString(products[i].dtype),
        products[i].b_transposed ? "^T" : "",
        work / seconds[i + 1],
        100 * seconds[0] / seconds[i + 1]);
  }
  std::printf("\n");
}

void decode(int64_t m, int64_t size) {
  // Several weights in turn, so that no cache holds them.
  const int64_t sets = std::max<int64_t>(1, (256 << 20) / (size * size * 4));
  std::vector<float> from(48 << 20, 1.0f), to(48 << 20);
  std::vector<std::vector<Product>> products;
  std::vector<std::function<void()>> runs = {[&] {
    at::parallel_for(0, from.size(), 1 << 20, [&](int64_t begin, int64_t end) {
      std::memcpy(&to[begin], &from[begin], (end - begin) * 4);
    });
  }};
  for (const bool transposed : {true, false}) {
    for (const auto dtype : kDtypes) {
      auto& row = products.emplace_back();
      for (int64_t s = 0; s < sets; ++s) {
        row.emplace_back(dtype, m, size, size, transposed);
      }
    }
  }
  for (auto& row : products) {
    runs.push_back([&row] {
      for (auto& product : row)
        product.run();
    });
  }
  const auto seconds = interleaved(runs, 5);
  const double copied = 2.0 * from.size() * 4 * 1e-9 / seconds[0];
  std::printf("M=%ld K=N=%ld  copy %5.1f GB/s", long(m), long(size), copied);
  for (size_t i = 0; i < products.size(); ++i) {
    const auto& first = products[i][0];
    const double bytes = double(first.b.size()) * sets * 1e-9;
    std::printf(
        "%s %s%s %.1f GB/s (%.0f%%)",
        i % 5 ? "," : "\n       ",
        c10::toString(first.dtype),
        first.b_transposed ? "^T" : "",
        bytes / seconds[i + 1],
        100 * bytes / seconds[i + 1] / copied);
  }
  std::printf("\n");
}

void small(int64_t size) {
  std::printf("%3ld^3 ", long(size));
  for (const auto dtype : kDtypes) {
    Product product(dtype, size, size, size, true);
    const auto seconds = interleaved(
        {[&] {
          for (int i = 0; i < 1000; ++i)
            product.run();
        }},
        5);
    std::printf(" %s %.0f ns", c10::toString(dtype), seconds[0] * 1e6);
  }
  std::printf("\n");
}

}  // namespace
}  // namespace neuron::bench

int main(int argc, char** argv) {
  using namespace neuron::bench;
  const std::string only = argc > 1 ? argv[1] : "";
  std::printf(
      "instruction set %s, %d threads\n",
      neuron::host_kernels::name(neuron::host_kernels::host_isa()),
      at::get_num_threads());
  if (only.empty() || only == "small") {
    for (const int64_t size : {4, 8, 16, 32, 64})
      small(size);
  }
  if (only.empty() || only == "square") {
    for (const int size : {128, 256, 512, 1024, 2048})
      square(size);
    if (argc > 2)
      square(4096);
  }
  if (only.empty() || only == "decode") {
    for (const int64_t m : {1, 2, 4, 8, 16})
      decode(m, 4096);
  }
}

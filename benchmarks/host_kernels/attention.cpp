// attention_forward and attention_backward beside the CPU device's fused
// kernel in fp32, and decoding beside a copy. Interleaved, medians.
#include "host_kernels/attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "host_kernels/isa.h"
#include "timing.h"

namespace neuron::bench {
namespace {

using host_kernels::AttentionShape;
using host_kernels::HeadsIn;
using host_kernels::HeadsOut;

HeadsIn in(const at::Tensor& x) {
  return {x.data_ptr(), x.scalar_type(), x.stride(0), x.stride(1), x.stride(2)};
}
HeadsOut out(const at::Tensor& x) {
  return {x.data_ptr(), x.scalar_type(), x.stride(0), x.stride(1), x.stride(2)};
}

// As a model has them: [batch, tokens, heads, width], seen transposed.
at::Tensor heads(int64_t b, int64_t h, int64_t n, int64_t d, at::ScalarType t) {
  return at::randn({b, n, h, d}).to(t).transpose(1, 2);
}

void train(
    int64_t b, int64_t h, int64_t kvh, int64_t n, int64_t d, bool causal) {
  std::vector<std::function<void()>> runs;
  {
    const auto q = heads(b, h, n, d, at::kFloat);
    const auto k = heads(b, h, n, d, at::kFloat);
    const auto v = heads(b, h, n, d, at::kFloat);
    const auto [o, lse] =
        at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0, causal);
    runs.push_back([=] {
      at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0, causal);
    });
    runs.push_back([=] {
      at::_scaled_dot_product_flash_attention_for_cpu_backward(
          q, q, k, v, o, lse, 0, causal);
    });
  }
  const auto dtypes = {at::kFloat, at::kBFloat16, at::kHalf};
  for (const auto dtype : dtypes) {
    const auto q = heads(b, h, n, d, dtype), o = heads(b, h, n, d, dtype);
    const auto k = heads(b, kvh, n, d, dtype), v = heads(b, kvh, n, d, dtype);
    const auto dq = heads(b, h, n, d, dtype);
    const auto dk = heads(b, kvh, n, d, dtype), dv = heads(b, kvh, n, d, dtype);
    const auto lse = at::empty({b, h, n});
    AttentionShape shape{b, h, kvh, n, n, d, d};
    shape.scale = 1 / std::sqrt(float(d));
    if (causal) {
      shape.visible.last = 0;
    }
    runs.push_back([=] {
      host_kernels::attention_forward(
          shape, in(q), in(k), in(v), out(o), lse.data_ptr<float>());
    });
    runs.push_back([=] {
      host_kernels::attention_backward(
          shape,
          in(q),
          in(k),
          in(v),
          in(o),
          in(q),
          lse.data_ptr<float>(),
          {out(dq), out(dk), out(dv)});
    });
  }
  const auto seconds = interleaved(runs, 3);
  const double work = 4e-9 * b * h * n * n * d * (causal ? 0.5 : 1);
  std::printf(
      "batch %ld heads %ld/%ld tokens %ld width %ld%s: CPU fp32 %.1f + %.1f ms",
      long(b),
      long(h),
      long(kvh),
      long(n),
      long(d),
      causal ? " causal" : "",
      seconds[0] * 1e3,
      seconds[1] * 1e3);
  int i = 2;
  for (const auto dtype : dtypes) {
    std::printf(
        "; %s forward %.1f ms (%.2fx, %.0f GFLOP/s) backward %.1f ms (%.2fx)",
        c10::toString(dtype),
        seconds[i] * 1e3,
        seconds[i] / seconds[0],
        work / seconds[i],
        seconds[i + 1] * 1e3,
        seconds[i + 1] / seconds[1]);
    i += 2;
  }
  std::printf("\n");
}

void decode(int64_t h, int64_t kvh, int64_t n, int64_t d) {
  std::vector<std::function<void()>> runs;
  const auto from = at::ones({32 << 20}), to = at::ones({32 << 20});
  runs.push_back([=]() mutable { to.copy_(from); });
  const auto dtypes = {
      at::kFloat, at::kBFloat16, at::kHalf, at::kFloat8_e4m3fn};
  for (const auto dtype : dtypes) {
    const auto kept = dtype == at::kFloat8_e4m3fn ? at::kBFloat16 : dtype;
    const auto q = heads(1, h, 1, d, kept), o = heads(1, h, 1, d, kept);
    const auto k = at::randn({1, kvh, n, d}).to(dtype);
    const auto v = at::randn({1, kvh, n, d}).to(dtype);
    AttentionShape shape{1, h, kvh, 1, n, d, d};
    runs.push_back([=] {
      host_kernels::attention_forward(
          shape, in(q), in(k), in(v), out(o), nullptr);
    });
  }
  const auto seconds = interleaved(runs, 7);
  const double copied = 8e-9 * (32 << 20) / seconds[0];
  std::printf(
      "decode heads %ld/%ld keys %ld: copy %.1f GB/s",
      long(h),
      long(kvh),
      long(n),
      copied);
  int i = 1;
  for (const auto dtype : dtypes) {
    const double bytes = 2e-9 * kvh * n * d * c10::elementSize(dtype);
    std::printf(
        "; %s %.2f ms, %.1f GB/s",
        c10::toString(dtype),
        seconds[i] * 1e3,
        bytes / seconds[i]);
    ++i;
  }
  std::printf("\n");
}

}  // namespace
}  // namespace neuron::bench

int main() {
  using namespace neuron::bench;
  std::printf(
      "instruction set %s, %d threads\n",
      neuron::host_kernels::name(neuron::host_kernels::host_isa()),
      at::get_num_threads());
  train(4, 12, 12, 256, 64, true);
  train(1, 8, 2, 1024, 128, true);
  train(1, 4, 4, 4096, 64, false);
  train(1, 4, 4, 4096, 64, true);
  decode(32, 8, 8192, 128);
  decode(9, 3, 2048, 64);
}

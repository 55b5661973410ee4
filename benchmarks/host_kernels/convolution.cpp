// Convolutions and their gradients beside the CPU device in fp32.
// Interleaved, medians.
#include "host_kernels/convolution.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cstdio>

#include "host_kernels/isa.h"
#include "timing.h"

namespace neuron::bench {
namespace {

using host_kernels::ConvolutionShape;
using host_kernels::ImagesIn;
using host_kernels::ImagesOut;

ImagesIn in(const at::Tensor& x) {
  return {x.data_ptr(), x.scalar_type(), x.stride(0), x.stride(1), 1};
}
ImagesOut out(const at::Tensor& x) {
  return {x.data_ptr(), x.scalar_type(), x.stride(0), x.stride(1), 1};
}

void run(
    const char* name,
    int64_t batch,
    int64_t channels,
    int64_t outputs,
    int64_t size,
    int64_t kernel,
    int64_t stride,
    int64_t groups = 1) {
  const auto padding = kernel / 2;
  const auto outs = (size + 2 * padding - kernel) / stride + 1;
  ConvolutionShape s{batch, groups, channels, outputs};
  s.input = {1, size, size};
  s.output = {1, outs, outs};
  s.kernel = {1, kernel, kernel};
  s.stride = {1, stride, stride};
  s.padding = {0, padding, padding};
  const auto x = at::randn({batch, channels, size, size});
  const auto w = at::randn({outputs, channels / groups, kernel, kernel});
  const auto y = at::randn({batch, outputs, outs, outs});
  std::vector<std::function<void()>> runs;
  runs.push_back([=] {
    at::conv2d(x, w, {}, {stride, stride}, {padding, padding}, {1, 1}, groups);
  });
  runs.push_back([=] {
    at::convolution_backward(
        y,
        x,
        w,
        at::OptionalIntArrayRef(),
        {stride, stride},
        {padding, padding},
        {1, 1},
        false,
        {0, 0},
        groups,
        {true, true, false});
  });
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const auto xt = x.to(dtype), wt = w.to(dtype), yt = y.to(dtype);
    const auto dx = at::empty_like(xt), dw = at::empty_like(wt);
    runs.push_back([=] {
      host_kernels::convolution_forward(
          s, in(xt), {wt.data_ptr(), dtype}, {}, out(yt));
    });
    runs.push_back([=] {
      host_kernels::convolution_input_gradient(
          s, in(yt), {wt.data_ptr(), dtype}, {}, out(dx));
      host_kernels::convolution_weight_gradient(
          s, in(xt), in(yt), dw.data_ptr(), dtype);
    });
  }
  const auto t = interleaved(runs, 5);
  std::printf("%-22s CPU fp32 %.2f + %.2f ms", name, t[0] * 1e3, t[1] * 1e3);
  int i = 2;
  for (const char* dtype : {"fp32", "bf16", "fp16"}) {
    std::printf(
        "; %s %.2f + %.2f ms (%.2fx, %.2fx)",
        dtype,
        t[i] * 1e3,
        t[i + 1] * 1e3,
        t[i] / t[0],
        t[i + 1] / t[1]);
    i += 2;
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
  run("stem 7x7/2 3->64", 4, 3, 64, 112, 7, 2);
  run("3x3 64->64 at 56", 4, 64, 64, 56, 3, 1);
  run("3x3/2 64->128 at 56", 4, 64, 128, 56, 3, 2);
  run("3x3 256->256 at 14", 4, 256, 256, 14, 3, 1);
  run("3x3 512->512 at 7", 4, 512, 512, 7, 3, 1);
  run("1x1 64->256 at 56", 4, 64, 256, 56, 1, 1);
  run("patch 16x16 3->384", 4, 3, 384, 224, 16, 16);
  run("depthwise 7x7 96 at 56", 4, 96, 96, 56, 7, 1, 96);
}

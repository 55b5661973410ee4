// Optimizer steps beside the CPU device at the same dtype.
// Interleaved, medians.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cstdio>

#include "host_kernels/isa.h"
#include "host_kernels/optimizer.h"
#include "timing.h"

namespace neuron::bench {
namespace {

using namespace host_kernels;

void compare(
    const char* name,
    at::ScalarType dtype,
    std::function<void()> device,
    std::function<void()> ours) {
  const auto t = interleaved({device, ours}, 9);
  std::printf(
      "%-28s %-9s CPU %8.1f us  ours %8.1f us  %.2fx\n",
      name,
      c10::toString(dtype),
      t[0] * 1e6,
      t[1] * 1e6,
      t[1] / t[0]);
}

void run(at::ScalarType dtype) {
  std::vector<at::Tensor> p, grad, m, v, step;
  std::vector<OptimizedArray> arrays;
  for (int i = 0; i < 8; ++i) {
    for (auto* list : {&p, &grad, &m, &v}) {
      list->push_back(at::rand({512, 1024}).to(dtype));
    }
    step.push_back(at::ones({}));
    arrays.push_back(
        {512 * 1024,
         dtype,
         dtype,
         p[i].data_ptr(),
         grad[i].data_ptr(),
         m[i].data_ptr(),
         v[i].data_ptr(),
         nullptr,
         1.0f});
  }
  compare(
      "AdamW, 8 x 512 x 1024",
      dtype,
      [&] {
        at::_fused_adamw_(
            p,
            grad,
            m,
            v,
            {},
            step,
            1e-3,
            0.9,
            0.999,
            0.01,
            1e-8,
            false,
            false);
      },
      [&] { adam_step(arrays.data(), arrays.size(), {}); });
}

}  // namespace
}  // namespace neuron::bench

int main() {
  using namespace neuron::bench;
  std::printf(
      "instruction set %s, %d threads\n",
      neuron::host_kernels::name(neuron::host_kernels::host_isa()),
      at::get_num_threads());
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    run(dtype);
  }
}

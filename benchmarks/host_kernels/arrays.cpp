// Norms, softmax and optimizer steps beside the CPU device at the same dtype.
// Interleaved, medians.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cstdio>

#include "host_kernels/isa.h"
#include "host_kernels/norm.h"
#include "host_kernels/optimizer.h"
#include "host_kernels/softmax.h"
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
  const int64_t rows = 2048, width = 1024;
  const auto x = at::randn({rows, width}).to(dtype);
  const auto dy = at::randn({rows, width}).to(dtype);
  const auto w = at::ones({width}).to(dtype), b = at::zeros({width}).to(dtype);
  const auto y = at::empty_like(x), dx = at::empty_like(x);
  const auto dw = at::empty_like(w), db = at::empty_like(b);
  const auto mean = at::empty({rows}), rstd = at::empty({rows});
  const Norm norm{rows, width, dtype, dtype, true};
  const auto forward = [=](const Norm& kind) {
    norm_forward(
        kind,
        1e-5f,
        x.data_ptr(),
        w.data_ptr(),
        b.data_ptr(),
        y.data_ptr(),
        mean.data_ptr<float>(),
        rstd.data_ptr<float>());
  };
  compare(
      "layer norm",
      dtype,
      [=] { at::native_layer_norm(x, {width}, w, b, 1e-5); },
      [=] { forward(norm); });
  auto rms = norm;
  rms.centered = false;
  compare(
      "rms norm",
      dtype,
      [=] { at::rms_norm(x, {width}, w, 1e-5); },
      [=] { forward(rms); });
  forward(norm);
  const auto [cy, cm, cr] = at::native_layer_norm(x, {width}, w, b, 1e-5);
  compare(
      "layer norm backward",
      dtype,
      [=, cm = cm, cr = cr] {
        at::native_layer_norm_backward(
            dy, x, {width}, cm, cr, w, b, {true, true, true});
      },
      [=] {
        norm_backward(
            norm,
            dy.data_ptr(),
            x.data_ptr(),
            mean.data_ptr<float>(),
            rstd.data_ptr<float>(),
            w.data_ptr(),
            {dx.data_ptr(), dw.data_ptr(), db.data_ptr()});
      });
  const Rows shape{rows, width, dtype};
  compare(
      "softmax",
      dtype,
      [=] { at::_softmax(x, 1, false); },
      [=] { softmax_forward(shape, false, x.data_ptr(), y.data_ptr()); });
  compare(
      "softmax backward",
      dtype,
      [=] { at::_softmax_backward_data(dy, y, 1, dtype); },
      [=] {
        softmax_backward(
            shape, false, dy.data_ptr(), y.data_ptr(), dx.data_ptr());
      });
  const auto targets = at::randint(width, {rows}, at::kLong);
  const auto losses = at::empty({rows}), lse = at::empty({rows});
  const auto g = at::full({rows}, 1.0 / rows);
  compare(
      "cross-entropy both ways",
      dtype,
      [=] {
        const auto lp = at::_log_softmax(x, 1, false);
        const auto [loss, total] =
            at::nll_loss_forward(lp, targets, {}, 1, -100);
        at::_log_softmax_backward_data(
            at::nll_loss_backward(
                at::ones_like(loss), lp, targets, {}, 1, -100, total),
            lp,
            1,
            dtype);
      },
      [=] {
        cross_entropy_forward(
            shape,
            {},
            x.data_ptr(),
            targets.data_ptr<int64_t>(),
            losses.data_ptr<float>(),
            lse.data_ptr<float>());
        cross_entropy_backward(
            shape,
            {},
            x.data_ptr(),
            targets.data_ptr<int64_t>(),
            lse.data_ptr<float>(),
            g.data_ptr<float>(),
            dx.data_ptr());
      });
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

// Fused LSTM and GRU cells, which ATen asks of every device but the CPU.
#include <ATen/TensorOperators.h>
#include <ATen/core/IListRef.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

namespace neuron {
namespace {

using at::Tensor;
using Optional = std::optional<Tensor>;

// Like a fused cell, bf16 and fp16 are computed in fp32 and rounded once.
Tensor wide(const Tensor& tensor) {
  const auto dtype = tensor.scalar_type();
  return dtype == at::kBFloat16 || dtype == at::kHalf ? tensor.to(at::kFloat)
                                                      : tensor;
}

// What a linear layer gives, whose bias came separately.
Tensor with_bias(const Tensor& product, const Optional& bias) {
  auto sum = wide(product);
  return bias.has_value() && bias->defined() ? sum + wide(*bias) : sum;
}

// Rounded results of one cell, all of `like`'s dtype.
template <class... Ts>
auto rounded(const Tensor& like, const Ts&... each) {
  return std::make_tuple(
      (each.defined() ? each.to(like.scalar_type()) : each)...);
}

// The factors in autograd's order, so that fp32 rounds as unfused cells do.
Tensor sigmoid_gradient(const Tensor& gradient, const Tensor& y) {
  return gradient * (1 - y) * y;
}

Tensor tanh_gradient(const Tensor& gradient, const Tensor& y) {
  return gradient * (1 - y * y);
}

// Gates in the order input, forget, cell, output; the workspace keeps them
// activated, [batch, 4 hidden].
std::tuple<Tensor, Tensor, Tensor> lstm_cell(
    const Tensor& input_gates,
    const Tensor& hidden_gates,
    const Tensor& cx,
    const Optional& input_bias,
    const Optional& hidden_bias) {
  const auto gates = (with_bias(hidden_gates, hidden_bias) +
                      with_bias(input_gates, input_bias))
                         .chunk(4, 1);
  const auto input = gates[0].sigmoid();
  const auto forget = gates[1].sigmoid();
  const auto cell = gates[2].tanh();
  const auto output = gates[3].sigmoid();
  const auto cy = forget * wide(cx) + input * cell;
  const auto hy = output * cy.tanh();
  return rounded(cx, hy, cy, at::cat({input, forget, cell, output}, 1));
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(
    const Optional& grad_hy,
    const Optional& grad_cy,
    const Tensor& cx,
    const Tensor& cy,
    const Tensor& workspace,
    bool has_bias) {
  const bool has_hy = grad_hy.has_value() && grad_hy->defined();
  const bool has_cy = grad_cy.has_value() && grad_cy->defined();
  if (!has_hy && !has_cy) {
    return {};
  }
  const auto gates = wide(workspace).chunk(4, 1);
  const auto& input = gates[0];
  const auto& forget = gates[1];
  const auto& cell = gates[2];
  const auto& output = gates[3];
  const auto tanh_cy = wide(cy).tanh();
  const auto hy = has_hy ? wide(*grad_hy) : at::zeros_like(tanh_cy);
  auto through_cell = tanh_gradient(hy * output, tanh_cy);
  if (has_cy) {
    through_cell = wide(*grad_cy) + through_cell;
  }
  const auto grad_gates = at::cat(
      {sigmoid_gradient(through_cell * cell, input),
       sigmoid_gradient(through_cell * wide(cx), forget),
       tanh_gradient(through_cell * input, cell),
       sigmoid_gradient(hy * tanh_cy, output)},
      1);
  const auto grad_bias = has_bias ? grad_gates.sum(0) : Tensor();
  return rounded(cx, grad_gates, through_cell * forget, grad_bias);
}

// Gates in the order reset, update, new; the workspace keeps
// (reset, update, new, hx, hidden part of new), [batch, 5 hidden].
std::tuple<Tensor, Tensor> gru_cell(
    const Tensor& input_gates,
    const Tensor& hidden_gates,
    const Tensor& hx,
    const Optional& input_bias,
    const Optional& hidden_bias) {
  const auto from_input = with_bias(input_gates, input_bias).chunk(3, 1);
  const auto from_hidden = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
  const auto reset = (from_hidden[0] + from_input[0]).sigmoid();
  const auto update = (from_hidden[1] + from_input[1]).sigmoid();
  const auto fresh = (from_input[2] + from_hidden[2] * reset).tanh();
  const auto before = wide(hx);
  const auto hy = (before - fresh) * update + fresh;
  return rounded(
      hx, hy, at::cat({reset, update, fresh, before, from_hidden[2]}, 1));
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(
    const Tensor& grad_hy, const Tensor& workspace, bool has_bias) {
  const auto saved = wide(workspace).chunk(5, 1);
  const auto& reset = saved[0];
  const auto& update = saved[1];
  const auto& fresh = saved[2];
  const auto& hx = saved[3];
  const auto& hidden_new = saved[4];
  const auto hy = wide(grad_hy);
  const auto grad_update = sigmoid_gradient(hy * (hx - fresh), update);
  const auto grad_new = tanh_gradient(hy * (1 - update), fresh);
  const auto grad_reset = sigmoid_gradient(grad_new * hidden_new, reset);
  const auto grad_input = at::cat({grad_reset, grad_update, grad_new}, 1);
  const auto grad_hidden =
      at::cat({grad_reset, grad_update, grad_new * reset}, 1);
  const auto input_bias = has_bias ? grad_input.sum(0) : Tensor();
  const auto hidden_bias = has_bias ? grad_hidden.sum(0) : Tensor();
  return rounded(
      grad_hy, grad_input, grad_hidden, hy * update, input_bias, hidden_bias);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_thnn_fused_lstm_cell", TORCH_FN(lstm_cell));
  m.impl("_thnn_fused_lstm_cell_backward_impl", TORCH_FN(lstm_cell_backward));
  m.impl("_thnn_fused_gru_cell", TORCH_FN(gru_cell));
  m.impl("_thnn_fused_gru_cell_backward", TORCH_FN(gru_cell_backward));
}

}  // namespace
}  // namespace neuron

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

Tensor plus(Tensor sum, const Optional& bias) {
  return bias.has_value() && bias->defined() ? sum + *bias : sum;
}

// Gates in the order input, forget, cell, output; the workspace keeps them
// activated, [batch, 4 hidden].
std::tuple<Tensor, Tensor, Tensor> lstm_cell(
    const Tensor& input_gates,
    const Tensor& hidden_gates,
    const Tensor& cx,
    const Optional& input_bias,
    const Optional& hidden_bias) {
  const auto gates =
      plus(plus(input_gates + hidden_gates, input_bias), hidden_bias)
          .chunk(4, 1);
  const auto input = gates[0].sigmoid();
  const auto forget = gates[1].sigmoid();
  const auto cell = gates[2].tanh();
  const auto output = gates[3].sigmoid();
  auto cy = forget * cx + input * cell;
  auto hy = output * cy.tanh();
  return {hy, cy, at::cat({input, forget, cell, output}, 1)};
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
  const auto gates = workspace.chunk(4, 1);
  const auto& input = gates[0];
  const auto& forget = gates[1];
  const auto& cell = gates[2];
  const auto& output = gates[3];
  const auto tanh_cy = cy.tanh();
  const auto hy = has_hy ? *grad_hy : at::zeros_like(cy);
  auto through_cell = hy * output * (1 - tanh_cy * tanh_cy);
  if (has_cy) {
    through_cell = through_cell + *grad_cy;
  }
  auto grad_gates = at::cat(
      {through_cell * cell * input * (1 - input),
       through_cell * cx * forget * (1 - forget),
       through_cell * input * (1 - cell * cell),
       hy * tanh_cy * output * (1 - output)},
      1);
  auto grad_bias = has_bias ? grad_gates.sum(0) : Tensor();
  return {grad_gates, through_cell * forget, grad_bias};
}

// Gates in the order reset, update, new; the workspace keeps
// (reset, update, new, hx, hidden part of new), [batch, 5 hidden].
std::tuple<Tensor, Tensor> gru_cell(
    const Tensor& input_gates,
    const Tensor& hidden_gates,
    const Tensor& hx,
    const Optional& input_bias,
    const Optional& hidden_bias) {
  const auto from_input = plus(input_gates, input_bias).chunk(3, 1);
  const auto from_hidden = plus(hidden_gates, hidden_bias).chunk(3, 1);
  const auto reset = (from_input[0] + from_hidden[0]).sigmoid();
  const auto update = (from_input[1] + from_hidden[1]).sigmoid();
  const auto fresh = (from_input[2] + reset * from_hidden[2]).tanh();
  auto hy = fresh + update * (hx - fresh);
  return {hy, at::cat({reset, update, fresh, hx, from_hidden[2]}, 1)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(
    const Tensor& grad_hy, const Tensor& workspace, bool has_bias) {
  const auto saved = workspace.chunk(5, 1);
  const auto& reset = saved[0];
  const auto& update = saved[1];
  const auto& fresh = saved[2];
  const auto& hx = saved[3];
  const auto& hidden_new = saved[4];
  const auto grad_update = grad_hy * (hx - fresh) * update * (1 - update);
  const auto grad_new = grad_hy * (1 - update) * (1 - fresh * fresh);
  const auto grad_reset = grad_new * hidden_new * reset * (1 - reset);
  auto grad_input = at::cat({grad_reset, grad_update, grad_new}, 1);
  auto grad_hidden = at::cat({grad_reset, grad_update, grad_new * reset}, 1);
  auto input_bias = has_bias ? grad_input.sum(0) : Tensor();
  auto hidden_bias = has_bias ? grad_hidden.sum(0) : Tensor();
  return {grad_input, grad_hidden, grad_hy * update, input_bias, hidden_bias};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_thnn_fused_lstm_cell", TORCH_FN(lstm_cell));
  m.impl("_thnn_fused_lstm_cell_backward_impl", TORCH_FN(lstm_cell_backward));
  m.impl("_thnn_fused_gru_cell", TORCH_FN(gru_cell));
  m.impl("_thnn_fused_gru_cell_backward", TORCH_FN(gru_cell_backward));
}

}  // namespace
}  // namespace neuron

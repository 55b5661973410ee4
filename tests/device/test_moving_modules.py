"""Modules move as they do to other accelerators: in place, their parameters the same objects."""

from __future__ import annotations

import pytest
import torch
from torch import nn


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(7, 4)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.tokens(tokens))


@pytest.mark.parametrize("there_and_back", [("neuron",), ("neuron", "cpu"), ("neuron:1", "neuron")])
def test_tied_weights_stay_tied(there_and_back):
    model = Tied()
    for device in there_and_back:
        model.to(device)
    assert model.head.weight is model.tokens.weight
    assert len(list(model.parameters())) == 1


def test_tied_weights_have_the_sum_of_both_gradients():
    torch.manual_seed(0)
    model, tokens = Tied(), torch.tensor([1, 3, 3])
    model(tokens).square().sum().backward()
    expected = model.tokens.weight.grad.clone()
    model.zero_grad()
    model.to("neuron")
    model(tokens.to("neuron")).square().sum().backward()
    torch.testing.assert_close(model.tokens.weight.grad.cpu(), expected)


def test_an_optimizer_made_before_the_move_trains_the_moved_model():
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    model.to("neuron")
    before = model.weight.detach().cpu()
    model(torch.ones(1, 3, device="neuron")).sum().backward()
    optimizer.step()
    torch.testing.assert_close(model.weight.detach().cpu(), before - 0.5)


def test_gradients_move_with_their_parameters():
    model = nn.Linear(3, 2)
    model(torch.ones(1, 3)).sum().backward()
    model.to("neuron")
    assert model.weight.grad.device == model.weight.device == torch.device("neuron:0")
    model(torch.ones(1, 3, device="neuron")).sum().backward()
    assert model.weight.grad.cpu().tolist() == [[2.0] * 3] * 2


def test_data_may_move():
    parameter = nn.Parameter(torch.arange(3.0))
    parameter.data = parameter.data.to("neuron")
    assert parameter.device.type == "neuron"
    assert parameter.tolist() == [0.0, 1.0, 2.0]
    parameter.data = parameter.data.cpu()
    assert parameter.device.type == "cpu"
    assert parameter.tolist() == [0.0, 1.0, 2.0]


def test_data_of_another_kind_is_refused():
    parameter = nn.Parameter(torch.ones(3, device="neuron"))
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        parameter.data = torch.ones(3, device="meta")
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        parameter.data = torch.ones(3).to_sparse()
    assert parameter.tolist() == [1.0] * 3


def test_a_lazy_module_moves_before_it_knows_its_shape():
    module = nn.LazyLinear(2).to("neuron")
    assert module(torch.ones(1, 5, device="neuron")).shape == (1, 2)
    assert module.weight.shape == (2, 5)
    assert module.weight.device.type == "neuron"

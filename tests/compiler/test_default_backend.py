"""torch.compile without a backend's name goes the way of the tensors' device."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import torch_neuronx


@pytest.fixture(autouse=True)
def _fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
    torch.compiler.set_default_backend(None)


def compiled_ran() -> bool:
    return "neuron::compiled" in torch_neuronx.get_executed_ops()


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"mode": "reduce-overhead"},
        {"mode": "max-autotune-no-cudagraphs"},
        {"dynamic": True},
        {"options": {"epilogue_fusion": False, "triton.cudagraphs": True}},
    ],
    ids=str,
)
def test_plain_compile_runs_on_neuron(arguments):
    torch_neuronx.clear_op_tracking()
    model = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Dropout(0.5)).to("neuron")
    x = torch.randn(4, 8, device="neuron", requires_grad=True)
    torch.manual_seed(0)
    expected = model(x)
    torch.manual_seed(0)
    actual = torch.compile(model, fullgraph=True, **arguments)(x)
    torch.testing.assert_close(actual, expected)
    actual.sum().backward()
    assert x.grad is not None
    assert x.grad.device == x.device
    assert compiled_ran()


def test_a_graph_without_neuron_inputs_that_makes_neuron_tensors():
    torch_neuronx.clear_op_tracking()
    function = torch.compile(lambda: torch.arange(5, device="neuron") * 2, fullgraph=True)
    assert function().tolist() == [0, 2, 4, 6, 8]
    assert compiled_ran()


def test_cpu_tensors_stay_with_inductor():
    torch_neuronx.clear_op_tracking()
    assert torch.compile(lambda x: x + 1, fullgraph=True)(torch.zeros(3)).device.type == "cpu"
    assert not compiled_ran()


def test_the_default_backend_can_be_neuron():
    torch_neuronx.clear_op_tracking()
    torch.compiler.set_default_backend("neuron")

    class Doubled(nn.Linear):
        def forward(self, x):
            return 2 * super().forward(x)

    model = Doubled(4, 4).to("neuron")
    model.compile(fullgraph=True)
    assert model(torch.ones(2, 4, device="neuron")).shape == (2, 4)
    assert compiled_ran()

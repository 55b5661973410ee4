"""Kernels in torch.compile: one node, no break, the values of eager."""

from __future__ import annotations

import enum

import pytest
import torch

import nki
import nki.language as nl
import torch_neuronx


class Mode(enum.Enum):
    plus = 1
    minus = 2


@nki.jit
def combine(a, b, mode=Mode.plus, factors=(1.0,), label="x"):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    right = nl.multiply(nl.load(b), factors[0])
    op = nl.add if mode is Mode.plus else nl.subtract
    nl.store(out, op(nl.load(a), right))
    return out


def _captured(function, *args):
    """The result of the compiled function, and the operators of its graphs."""
    nodes = []

    def keep(gm, _):
        nodes.extend(str(node.target) for node in gm.graph.nodes if node.op == "call_function")
        return gm.forward

    torch._dynamo.reset()
    from torch._dynamo.backends.common import aot_autograd

    out = torch.compile(function, backend=aot_autograd(fw_compiler=keep), fullgraph=True)(*args)
    return out, nodes


@pytest.mark.parametrize("backend", ["neuron", "aot_eager"])
@pytest.mark.parametrize("mode", list(Mode))
def test_values_of_eager(rng, backend, mode):
    def function(a, b):
        return combine(a * 2, b, mode, factors=(3.0,)).relu()

    torch._dynamo.reset()
    a, b = torch.randn(2, 100, 64, generator=rng).to("neuron")
    out = torch.compile(function, backend=backend, fullgraph=True)(a, b)
    assert out.device == a.device
    torch.testing.assert_close(out, function(a, b), rtol=1e-6, atol=1e-6)


def test_one_node(rng):
    a, b = torch.randn(2, 100, 64, generator=rng).to("neuron")
    _, nodes = _captured(lambda a, b: combine(a + 1, b) * 2, a, b)
    assert len(nodes) == 3
    assert nodes[1].startswith("nki.combine_")


@pytest.mark.parametrize("grid", [1, (1,), 2])
def test_launch_grids(rng, grid):
    a, b = torch.randn(2, 100, 64, generator=rng).to("neuron")

    def function(a, b):
        return torch_neuronx.wrap_nki(combine)[grid](a, b) + 1

    out, _ = _captured(function, a, b)
    assert torch.equal(out, function(a, b))


def test_new_shapes_are_new_specialisations(rng):
    torch._dynamo.reset()
    compiled = torch.compile(lambda a: combine(a, a) + 1, backend="neuron", fullgraph=True)
    for rows in (4, 5, 6, 100):
        a = torch.randn(rows, 8, generator=rng).to("neuron")
        torch.testing.assert_close(compiled(a), a + a + 1)


def test_inputs_that_the_kernel_writes(accumulate):
    a, b = torch.ones(128, 64, device="neuron"), torch.ones(128, 64, device="neuron")

    def function(a, b):
        accumulate(a, b)
        return a * 2

    torch._dynamo.reset()
    out = torch.compile(function, backend="neuron", fullgraph=True)(a, b)
    assert torch.equal(out.cpu(), torch.full((128, 64), 4.0))
    assert torch.equal(a.cpu(), torch.full((128, 64), 2.0))


def test_equal_kernels_have_equal_names_and_others_do_not():
    def named(scale):
        @nki.jit
        def same(x):
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            nl.store(out, nl.multiply(nl.load(x), scale))
            return out

        return same

    x = torch.ones(4, 4, device="neuron")
    torch_neuronx.clear_op_tracking()
    outs = [named(scale)(x)[0, 0].item() for scale in (2.0, 2.0, 3.0)]
    assert outs == [2.0, 2.0, 3.0]
    names = [name for name in torch_neuronx.get_executed_ops() if name.startswith("nki::same_")]
    assert len(names) == 2

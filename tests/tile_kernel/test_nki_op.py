"""nki_op: launchers as operators, with autograd, autocast, fake tensors and compile."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.library import opcheck

import torch_neuronx
from torch_neuronx.errors import TileKernelError

_numbers = itertools.count()


@pytest.fixture
def op(add):
    @torch_neuronx.nki_op(f"tile_kernel_test::add{next(_numbers)}", mutates_args=())
    def launch(a: torch.Tensor, b: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return add(a, b, scale)

    def setup(ctx, inputs, output):
        ctx.scale = inputs[2]

    launch.register_autograd(lambda ctx, g: (g, g * ctx.scale, None), setup_context=setup)
    return launch


def test_passes_the_checks_of_pytorch(op, rng):
    a, b = torch.randn(2, 130, 16, generator=rng).to("neuron")
    # test_autograd_registration knows CPU, CUDA and XPU only; test_training_through_it is ours.
    utils = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    opcheck(op, (a.requires_grad_(), b, 2.0), test_utils=utils)


@pytest.mark.parametrize("compiled", [False, True])
def test_training_through_it(op, rng, compiled):
    a, b = torch.randn(2, 130, 16, generator=rng).to("neuron")
    b.requires_grad_()

    def loss(a, b):
        return op(a, b, 2.0).sin().sum()

    torch._dynamo.reset()
    function = torch.compile(loss, backend="neuron", fullgraph=True) if compiled else loss
    function(a, b).backward()
    assert b.grad.device == a.device
    torch.testing.assert_close(b.grad, (2 * (a + 2 * b).cos()).detach())


def test_autocast(op):
    a = torch.ones(128, 4, device="neuron")
    op.register_autocast("neuron", torch.bfloat16)
    with torch.autocast("neuron"):
        assert op(a, a).dtype == torch.bfloat16
    assert op(a, a).dtype == torch.float32


def test_what_it_writes_is_declared(accumulate):
    @torch_neuronx.nki_op(f"tile_kernel_test::into{next(_numbers)}", mutates_args={"a"})
    def into(a: torch.Tensor, b: torch.Tensor) -> None:
        accumulate(a, b)

    a, b = torch.ones(4, 4, device="neuron"), torch.ones(4, 4, device="neuron")

    def function(a, b):
        into(a, b)
        return a + 1

    torch._dynamo.reset()
    assert torch.compile(function, backend="neuron", fullgraph=True)(a, b).unique().item() == 3
    assert a.unique().item() == 2
    opcheck(into, (a, b))


def test_misuse(add):
    with pytest.raises(TileKernelError, match="namespace::name"):
        torch_neuronx.nki_op("add", mutates_args=())(lambda x: x)
    with pytest.raises(TileKernelError, match=r"def launch\(x: torch.Tensor\)"):
        torch_neuronx.nki_op("tile_kernel_test::raw", mutates_args=())(add)
    with pytest.raises(TileKernelError, match="not 3"):
        torch_neuronx.wrap_nki(3)

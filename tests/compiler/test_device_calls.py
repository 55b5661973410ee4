"""Products, convolutions and attention of a compiled graph are this device's own kernels."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import torch_neuronx

TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 5e-2, torch.float16: 5e-2}


@pytest.fixture(autouse=True)
def _fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Mixed(nn.Module):
    """Attention, a convolution and batched products around a residual stream."""

    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(width, 2 * width)
        self.mix = nn.Conv1d(width, width, 3, padding=1)

    def forward(self, x):
        batch, length, width = x.shape
        y = self.norm(x)
        query = self.query(y).view(batch, length, self.heads, -1).transpose(1, 2)
        both = self.key_value(y).view(batch, length, 2, self.heads, -1)
        key, value = both.permute(2, 0, 3, 1, 4)
        found = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + found.transpose(1, 2).reshape(batch, length, width)
        x = x + self.mix(x.transpose(1, 2)).transpose(1, 2)
        return x + (torch.bmm(x, x.transpose(1, 2)) / width).softmax(-1) @ x


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_forward_and_gradients_are_eagers(dtype, dynamic):
    torch.manual_seed(0)
    eager = Mixed().to("neuron", dtype)
    compiled = copy.deepcopy(eager)
    call = torch.compile(compiled, backend="neuron", fullgraph=True, dynamic=dynamic)
    close = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype] * 4}
    for length in (9, 12):
        x = torch.randn(2, length, 32, device="neuron", dtype=dtype)
        expected, actual = eager(x), call(x)
        torch.testing.assert_close(actual, expected, **close)
        gradient = torch.randn_like(expected)
        for output in (expected, actual):
            output.backward(gradient)
    for one, other in zip(compiled.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, **close)


@pytest.mark.parametrize(
    ("function", "shapes", "operator"),
    [
        (torch.mm, [(5, 8), (8, 3)], "aten::mm"),
        (torch.bmm, [(2, 5, 8), (2, 8, 3)], "aten::bmm"),
        (torch.addmm, [(3,), (5, 8), (8, 3)], "aten::addmm"),
        (torch.baddbmm, [(2, 5, 3), (2, 5, 8), (2, 8, 3)], "aten::baddbmm"),
        (F.conv2d, [(1, 4, 6, 6), (4, 4, 3, 3)], "aten::convolution"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_narrow_products_run_as_device_kernels(function, shapes, operator):
    inputs = [torch.randn(shape, device="neuron", dtype=torch.bfloat16) for shape in shapes]
    compiled = torch.compile(function, backend="neuron", fullgraph=True)
    compiled(*inputs)
    torch_neuronx.clear_op_tracking()
    torch.testing.assert_close(compiled(*inputs), function(*inputs), rtol=2e-2, atol=5e-2)
    torch_neuronx.clear_op_tracking()
    compiled(*inputs)
    assert operator in torch_neuronx.get_executed_ops()


def test_results_of_device_kernels_are_freed_and_counted():
    compiled = torch.compile(lambda a, b: (a @ b).relu() @ b, backend="neuron", fullgraph=True)
    a, b = (torch.randn(64, 64, device="neuron", dtype=torch.bfloat16) for _ in range(2))
    compiled(a, b)
    before = torch.neuron.memory_allocated()
    kept = compiled(a, b)
    assert torch.neuron.memory_allocated() - before == kept.nbytes
    del kept
    assert torch.neuron.memory_allocated() == before


def test_operators_take_and_return_cpu_tensors_too():
    a, b = torch.randn(5, 8).bfloat16(), torch.randn(8, 3).bfloat16()
    result = torch.ops.neuron.mm(a, b)
    assert result.device.type == "cpu"
    torch.testing.assert_close(result, a @ b, rtol=2e-2, atol=2e-2)
    same = torch.ops.neuron.native_dropout(a, 0.5, False)[0]
    assert torch.equal(same, a)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.float32])
def test_a_histogram_counts_integers_too(dtype):
    def counts(x: torch.Tensor) -> torch.Tensor:
        return torch.histc(x + 1, bins=4, min=0, max=3)

    x = torch.randint(0, 4, (50,)).to(dtype).to("neuron")
    result = torch.compile(counts, backend="neuron", fullgraph=True)(x)
    assert result.dtype == dtype
    assert torch.equal(result, counts(x))

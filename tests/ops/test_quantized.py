"""Quantized tensors: made, read, computed with, copied, packed into layers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from compare import assert_same
from ops.under_test import DEVICE, Placement


def values() -> Tensor:
    torch.manual_seed(0)
    return torch.randn(3, 4, 6)


def per_tensor(x: Tensor) -> Tensor:
    return torch.quantize_per_tensor(x, 0.05, 10, torch.quint8)


def per_channel(x: Tensor) -> Tensor:
    scales = torch.tensor([0.1, 0.05, 0.02, 0.3], dtype=torch.double, device=x.device)
    zeros = torch.tensor([0, 1, 2, 3], device=x.device)
    return torch.quantize_per_channel(x, scales, zeros, 1, torch.qint8)


OPERATIONS: dict[str, Callable[[Tensor], object]] = {
    "make": per_tensor,
    "make qint8": lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
    "make qint32": lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint32),
    "make per channel": per_channel,
    "make dynamically": lambda x: torch.quantize_per_tensor_dynamic(x, torch.quint8, False),
    "dequantize": lambda x: per_tensor(x).dequantize(),
    "dequantize per channel": lambda x: per_channel(x).dequantize(),
    "integers": lambda x: per_tensor(x).int_repr(),
    "scale": lambda x: (per_tensor(x).q_scale(), per_tensor(x).q_zero_point()),
    "clone": lambda x: per_tensor(x).clone(),
    "reshape": lambda x: per_tensor(x).reshape(12, 6),
    "transpose": lambda x: per_tensor(x).transpose(0, 1).contiguous(),
    "slice": lambda x: per_tensor(x)[1:, ::2],
    "relu": lambda x: torch.relu(per_tensor(x)),
    "max pool": lambda x: nn.functional.max_pool2d(per_tensor(x)[None], 2),
    "mean": lambda x: per_tensor(x).mean(-1),
    "sort": lambda x: per_tensor(x).sort(-1),
    "equal": lambda x: per_tensor(x) == per_tensor(x + 0.01),
    "cat": lambda x: torch.cat([per_tensor(x), per_tensor(x * 2)]),
    "copy": lambda x: per_tensor(x * 0).copy_(x),
    "add": lambda x: torch.ops.quantized.add(per_tensor(x), per_tensor(x), 0.1, 5),
    "fake quantize": lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127),
    "empty": lambda x: torch._empty_affine_quantized(
        [2, 3], scale=0.5, zero_point=1, dtype=torch.quint8, device=x.device
    ).shape,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_quantized_operation_gives_the_cpus_result(name):
    x = values()
    assert_same(OPERATIONS[name](Placement()(x)), OPERATIONS[name](x))


@pytest.mark.parametrize("make", [per_tensor, per_channel])
def test_quantized_tensors_move_both_ways(make):
    x = values()
    assert_same(make(x).to(DEVICE), make(x))
    assert_same(make(x.to(DEVICE)).cpu(), make(x))


def test_a_dynamically_quantized_linear_layer_runs():
    torch.manual_seed(0)
    layer = torch.ao.nn.quantized.dynamic.Linear.from_float
    plain = nn.Linear(6, 4).eval()
    plain.qconfig = torch.ao.quantization.default_dynamic_qconfig
    quantized = layer(plain)
    x = values()
    assert_same(quantized(x.to(DEVICE)), quantized(x))

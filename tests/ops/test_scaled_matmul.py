"""Products of fp8 and int8 operands: the fp32 product of the same numbers, rounded once."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)


def quantized(*shape: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(*shape).to(dtype)


def assert_rounded_once(actual: Tensor, exact: Tensor) -> None:
    """Within one unit in the last place of the float64 result, rounded to the dtype."""
    expected = exact.to(actual.dtype)
    error = (actual.cpu().double() - exact).abs()
    eps = torch.finfo(actual.dtype).eps
    allowed = exact.abs() * eps + exact.abs().max() * torch.finfo(torch.float32).eps * 8
    assert (error <= allowed).all(), (actual.cpu() - expected).abs().max()


@pytest.mark.parametrize("dtype", FP8)
@pytest.mark.parametrize("shape", [(16, 32, 48), (1, 64, 33), (65, 130, 7)])
@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("out_dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_scaled_product(dtype, shape, by_row, out_dtype):
    torch.manual_seed(0)
    m, k, n = shape
    a, b = quantized(m, k, dtype=dtype), quantized(n, k, dtype=dtype)
    scale_a = torch.rand(m, 1) + 0.5 if by_row else torch.tensor(0.7)
    scale_b = torch.rand(1, n) + 0.5 if by_row else torch.tensor(1.3)
    bias = torch.randn(n).to(torch.bfloat16)
    actual = torch._scaled_mm(
        a.to("neuron"),
        b.to("neuron").t(),
        scale_a.to("neuron"),
        scale_b.to("neuron"),
        bias=bias.to("neuron"),
        out_dtype=out_dtype,
    )
    assert actual.dtype is out_dtype
    exact = (a.double() @ b.double().t()) * scale_a.double() * scale_b.double() + bias.double()
    assert_rounded_once(actual, exact)


def test_scales_are_read_when_the_product_runs():
    a = torch.ones(2, 16, device="neuron").to(torch.float8_e4m3fn)
    scale = torch.ones((), device="neuron")
    stream = torch.neuron.Stream()
    with torch.neuron.stream(stream):
        scale.mul_(3.0)
        product = torch._scaled_mm(a, a.t(), scale, scale, out_dtype=torch.float32)
    stream.synchronize()
    assert product.tolist() == [[144.0] * 2] * 2


def test_scaled_product_into_out():
    a = quantized(4, 16, dtype=FP8[0]).to("neuron")
    one = torch.ones((), device="neuron")
    out = torch.empty(4, 4, dtype=torch.bfloat16, device="neuron")
    torch._scaled_mm(a, a.t(), one, one, out_dtype=torch.bfloat16, out=out)
    assert_rounded_once(out, a.cpu().double() @ a.cpu().double().t())


def grouped(a: Tensor, b: Tensor, scale_a: Tensor, scale_b: Tensor, ends: list[int]) -> Tensor:
    """Each group in float64."""
    a, b = a.double(), b.double()
    spans = list(zip([0, *ends], ends, strict=False))
    if a.dim() == 2 and b.dim() == 3:
        parts = [
            a[i:j] @ b[g] * scale_a[i:j, None] * scale_b[g][None] for g, (i, j) in enumerate(spans)
        ]
        rest = torch.zeros(a.size(0) - ends[-1], b.size(2)).double()
        return torch.cat([*parts, rest])
    if a.dim() == 3 and b.dim() == 2:
        parts = [
            a[g] @ b[:, i:j] * scale_a[g][:, None] * scale_b[None, i:j]
            for g, (i, j) in enumerate(spans)
        ]
        return torch.cat(parts, 1)
    rows, columns = scale_a.view(len(ends), -1), scale_b.view(len(ends), -1)
    return torch.stack(
        [a[:, i:j] @ b[i:j] * rows[g][:, None] * columns[g][None] for g, (i, j) in enumerate(spans)]
    )


@pytest.mark.parametrize("kind", ["rows", "columns", "inner"])
def test_scaled_groups(kind):
    torch.manual_seed(0)
    dtype, ends = torch.float8_e4m3fn, [16, 16, 48]
    total = 64 if kind == "rows" else 48
    if kind == "rows":
        a, b = quantized(total, 32, dtype=dtype), quantized(3, 16, 32, dtype=dtype)
        b = b.transpose(1, 2)
        scale_a, scale_b = torch.rand(total) + 0.5, torch.rand(3, 16) + 0.5
    elif kind == "columns":
        a, b = quantized(3, 8, 32, dtype=dtype), quantized(total, 32, dtype=dtype).t()
        scale_a, scale_b = torch.rand(3, 8) + 0.5, torch.rand(total) + 0.5
    else:
        a, b = quantized(8, total, dtype=dtype), quantized(16, total, dtype=dtype).t()
        scale_a, scale_b = torch.rand(24) + 0.5, torch.rand(48) + 0.5
    actual = torch._scaled_grouped_mm(
        a.to("neuron"),
        b.to("neuron"),
        scale_a.to("neuron"),
        scale_b.to("neuron"),
        offs=torch.tensor(ends, dtype=torch.int32, device="neuron"),
        out_dtype=torch.bfloat16,
    )
    assert_rounded_once(actual, grouped(a, b, scale_a, scale_b, ends))


def test_scaled_groups_refuse_ends_that_are_not_inside():
    a = torch.ones(8, 16, device="neuron").to(torch.float8_e4m3fn)
    b = torch.ones(1, 16, 16, device="neuron").to(torch.float8_e4m3fn)
    ones = torch.ones(8, device="neuron"), torch.ones(1, 16, device="neuron")
    offs = torch.tensor([9], dtype=torch.int32, device="neuron")
    with pytest.raises(IndexError, match="group 0 ends at 9"):
        torch._scaled_grouped_mm(a, b, *ones, offs=offs)
    assert (torch.ones(2, device="neuron") + 1).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("rows", [1, 5, 40])
def test_int8_weights(dtype, rows):
    torch.manual_seed(0)
    x = torch.randn(rows, 96).to(dtype)
    weight = torch.randint(-128, 128, (56, 96), dtype=torch.int8)
    scales = (torch.rand(56) * 0.01).to(dtype)
    actual = torch._weight_int8pack_mm(x.to("neuron"), weight.to("neuron"), scales.to("neuron"))
    assert actual.dtype is dtype
    assert_rounded_once(actual, x.double() @ weight.double().t() * scales.double())

"""histc of integers, as other accelerators have it."""

from __future__ import annotations

import pytest
import torch

INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_counted_in_their_own_dtype(dtype):
    experts = torch.tensor([0, 3, 3, 1, 7, 3, 0], device="neuron").to(dtype)
    counts = torch.histc(experts, bins=8, min=0, max=7)
    assert counts.dtype == dtype
    assert counts.device == experts.device
    assert counts.tolist() == [2, 1, 0, 3, 0, 0, 0, 1]


def test_values_outside_the_range_are_not_counted():
    experts = torch.tensor([0, 4, 1, 4, -1], device="neuron", dtype=torch.int32)
    assert torch.histc(experts, bins=4, min=0, max=3).tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_other_dtypes_are_as_on_the_cpu(dtype):
    values = torch.linspace(-3, 3, 50, dtype=dtype)
    on_cpu = torch.histc(values, bins=7)
    assert torch.equal(torch.histc(values.to("neuron"), bins=7).cpu(), on_cpu)


@pytest.mark.parametrize("bins", [0, -1])
def test_no_bins(bins):
    with pytest.raises(RuntimeError, match="bins"):
        torch.histc(torch.ones(3, device="neuron", dtype=torch.int32), bins=bins)

"""Nested tensors, strided and jagged: the wheel's jagged samples, and the basic operations."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.testing._internal.opinfo.definitions.nested import njt_op_db

from compare import assert_same
from ops.calls import Arguments, check_call
from ops.catalogue import SEED, marked, samples_of
from ops.exceptions import RANDOM, UNINITIALISED
from ops.under_test import DEVICE

CASES = [
    marked("jagged", op.formatted_name, op)
    for op in njt_op_db
    if op.supports_njt and torch.float32 in op.supported_dtypes("cpu")
]


@pytest.mark.parametrize("op", CASES)
def test_op_on_jagged_inputs_gives_the_cpus_result(op):
    values = op.name not in RANDOM | UNINITIALISED
    for sample in samples_of(op, torch.float32):
        try:
            # Whose rounding is nearer the truth is for the tests of dense inputs to say.
            check_call(op.op, Arguments.of(sample, op), values=values, truth=False, slack_ulps=1.0)
        except AssertionError as error:
            error.add_note(f"sample {sample.name}")
            raise


def components(device: str) -> list[Tensor]:
    torch.manual_seed(SEED)
    return [torch.randn(n, 8).to(device) for n in (3, 5, 1)]


OPERATIONS = {
    "make": lambda x: x,
    "parts": lambda x: list(x.unbind()),
    "pad": lambda x: torch.nested.to_padded_tensor(x, 0.0),
    "twice": lambda x: x * 2,
    "sum of two": lambda x: x + x,
    "linear": lambda x: torch.nn.functional.linear(
        x, torch.eye(8, device=x.device)[:4].contiguous()
    ),
    "relu": lambda x: torch.relu(x),
    "normalised": lambda x: torch.nn.functional.layer_norm(
        x, (8,), torch.arange(8.0, device=x.device), torch.ones(8, device=x.device)
    ),
    "clone": lambda x: x.clone(),
    "detach": lambda x: x.detach(),
}


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
@pytest.mark.parametrize("name", OPERATIONS)
def test_nested_operation_gives_the_cpus_result(name, layout):
    def run(device):
        nested = torch.nested.nested_tensor(components(device), layout=layout)
        assert nested.device.type == torch.device(device).type
        return OPERATIONS[name](nested)

    assert_same(run(DEVICE), run("cpu"))


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_gradients_flow_through_nested_tensors(layout):
    def run(device):
        leaves = [t.requires_grad_() for t in components(device)]
        nested = torch.nested.as_nested_tensor(leaves, layout=layout)
        torch.nested.to_padded_tensor(nested * nested, 0.0).sum().backward()
        return [t.grad for t in leaves]

    assert_same(run(DEVICE), run("cpu"))


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_tensors_move_both_ways(layout):
    nested = torch.nested.nested_tensor(components("cpu"), layout=layout)
    there = nested.to(DEVICE)
    assert there.device.type == DEVICE
    assert_same(there, nested)
    assert_same(there.cpu(), nested)

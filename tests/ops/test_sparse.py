"""Sparse tensors of every layout: the wheel's sparse samples, and how they are made and used."""

from __future__ import annotations

import unittest

import pytest
import torch
from torch.testing._internal.opinfo.core import OpInfo

from compare import assert_same
from ops.calls import Arguments, check_call
from ops.catalogue import OPS, SEED, marked
from ops.exceptions import RANDOM
from ops.under_test import DEVICE, Placement

LAYOUTS = (
    torch.sparse_coo,
    torch.sparse_csr,
    torch.sparse_csc,
    torch.sparse_bsr,
    torch.sparse_bsc,
)
CASES = [
    marked("sparse", f"{op.formatted_name}-{str(layout)[6:]}", op, layout, one_in=3)
    for op in OPS
    for layout in LAYOUTS
    if op.supports_sparse_layout(layout) and torch.float32 in op.supported_dtypes("cpu")
]


def sparse_arguments(op: OpInfo, layout: torch.layout) -> list[Arguments]:
    """The wheel's sparse samples of an op; one matrix where it defines none."""
    torch.manual_seed(SEED)
    try:
        return [
            Arguments.of(sample, op)
            for sample in op.sample_inputs_sparse(layout, "cpu", torch.float32)
        ]
    except (NotImplementedError, unittest.SkipTest):
        return [Arguments(args=(to_layout(matrix(), layout),), kwargs={})]


@pytest.mark.parametrize(("op", "layout"), CASES)
def test_op_on_sparse_inputs_gives_the_cpus_result(op, layout):
    for number, given in enumerate(sparse_arguments(op, layout)):
        try:
            check_call(op.op, given, values=op.name not in RANDOM)
        except AssertionError as error:
            error.add_note(f"sample {number}: {given}")
            raise


def matrix(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    torch.manual_seed(SEED)
    dense = torch.randn(6, 8).to(dtype)
    return dense.where(torch.rand(6, 8) > 0.6, torch.zeros((), dtype=dtype))


def to_layout(dense: torch.Tensor, layout: torch.layout) -> torch.Tensor:
    blocks = (2, 2) if layout in (torch.sparse_bsr, torch.sparse_bsc) else None
    return dense.to_sparse(layout=layout, blocksize=blocks)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_dense_to_sparse_and_back(layout, dtype):
    dense = matrix(dtype)
    there = to_layout(dense.to(DEVICE), layout)
    assert there.device.type == DEVICE
    assert_same(there, to_layout(dense, layout))
    assert_same(there.to_dense(), dense)
    assert_same(there.cpu(), to_layout(dense, layout))
    assert_same(to_layout(dense, layout).to(DEVICE), to_layout(dense, layout))


def test_coo_tensors_are_made_coalesced_and_added():
    index = torch.tensor([[0, 2, 2, 0], [1, 3, 3, 1]])
    values = torch.tensor([1.0, 2.0, 3.0, 4.0])

    def make(index, values):
        x = torch.sparse_coo_tensor(index, values, (3, 4), device=values.device)
        y = x.coalesce()
        return x, y, y.indices(), y.values(), x + x, y * 2, x.t(), torch.sparse.sum(x, 0)

    assert_same(make(*Placement()((index, values))), make(index, values))


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_sparse_times_dense_and_its_gradient(layout):
    torch.manual_seed(SEED)
    right = torch.randn(8, 5)

    def run(left, right):
        right = right.requires_grad_()
        product = to_layout(left, layout) @ right
        product.sum().backward()
        return product.detach(), right.grad

    assert_same(
        run(*Placement()((matrix(), right))),
        run(matrix(), right.clone()),
        truth=lambda: run(matrix().double(), right.double()),
    )


def test_gradients_of_an_embedding_may_be_sparse():
    torch.manual_seed(SEED)
    weight, index = torch.randn(10, 4), torch.tensor([1, 3, 3, 9])

    def run(weight, index):
        weight = weight.requires_grad_()
        torch.nn.functional.embedding(index, weight, sparse=True).sum().backward()
        return weight.grad

    assert_same(run(*Placement()((weight, index))), run(weight.clone(), index))

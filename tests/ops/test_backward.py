"""Gradients of every differentiable op of the wheel are the CPU's gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._pytree import tree_leaves

from compare import assert_same
from ops.calls import Arguments, Outcome, assert_same_error, cotangent, outcome_of
from ops.catalogue import op_cases, samples_of
from ops.exceptions import RANDOM, SLACK_ULPS, UNINITIALISED
from ops.under_test import Placement, Truth

FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.complex64)
CASES = op_cases(
    "backward",
    lambda op: op.supported_backward_dtypes("cpu") if op.supports_autograd else (),
    dtypes=FLOATS,
    where=lambda op: op.name not in RANDOM | UNINITIALISED,
)


def gradients(
    op: OpInfo, sample: SampleInput, placement: Placement
) -> tuple[Outcome, list[Tensor | None]]:
    """The op's outcome with gradients of all leaves, all of it placed by `placement`."""
    given = Arguments.of(sample, op).placed(placement)
    leaves = [t for t in given.tensors() if t.requires_grad]

    def forward_and_backward(*args: Any, **kwargs: Any) -> list[Tensor | None]:
        outputs = sample.output_process_fn_grad(op.gradcheck_wrapper(op.op, *args, **kwargs))
        wanted = [x for x in tree_leaves(outputs) if isinstance(x, Tensor) and x.requires_grad]
        if not wanted or not leaves:
            return []
        plain = [x if x.layout is torch.strided else x.to_dense() for x in wanted]
        seeds = [placement(cotangent(x)).to(x.dtype) for x in plain]
        return list(torch.autograd.grad(plain, leaves, seeds, allow_unused=True))

    outcome = outcome_of(forward_and_backward, given)
    return outcome, outcome.value


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_gradients_are_the_cpus(op, dtype):
    for number, sample in enumerate(samples_of(op, dtype, requires_grad=True)):
        theirs, expected = gradients(op, sample, Placement("cpu"))
        ours, actual = gradients(op, sample, Placement())
        try:
            if theirs.error is not None:
                assert_same_error(ours.error, theirs.error)
                continue
            if ours.error is not None:
                raise AssertionError(f"only the device fails: {ours.error}") from ours.error
            assert_same(
                actual,
                expected,
                truth=lambda sample=sample: gradients(op, sample, Truth())[1],
                slack_ulps=SLACK_ULPS.get(op.name, 0.0),
                where="gradient",
            )
        except AssertionError as error:
            error.add_note(f"sample {number}: {sample.summary()}")
            raise

"""Every op of the wheel through torch.compile on the device: the CPU's eager result.

Ops that Inductor fails on for the CPU device may fail here, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from ops.calls import Arguments, Outcome, outcome_of
from ops.catalogue import op_cases, samples_of
from ops.exceptions import RANDOM, UNINITIALISED
from ops.under_test import Placement

DTYPES = (torch.float32, torch.bfloat16, torch.int64)
SAMPLES = 2
# Inductor may fuse, reorder sums and keep bfloat16 intermediates in float32.
TOLERANCES = {
    torch.float32: {"rtol": 2e-4, "atol": 2e-5},
    torch.bfloat16: {"rtol": 3e-2, "atol": 2e-2},
}


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(op: Any, backend: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        return op(*args, **kwargs)

    return torch.compile(function, backend=backend, dynamic=False)


def fails_the_same_way_on_the_cpu(op: Any, given: Arguments, expected: Outcome) -> bool:
    outcome = outcome_of(compiled(op, "inductor"), given.placed(Placement("cpu")))
    try:
        assert_close(outcome, expected)
    except AssertionError:
        return True
    return False


def assert_close(outcome: Outcome, expected: Outcome) -> None:
    if outcome.error is not None:
        raise AssertionError(f"only compiled: {outcome.error}") from outcome.error
    wanted = [x for x in tree_leaves(expected.value) if isinstance(x, Tensor)]
    got = [x for x in tree_leaves(outcome.value) if isinstance(x, Tensor)]
    assert len(wanted) == len(got)
    for want, have in zip(wanted, got, strict=True):
        torch.testing.assert_close(
            have.cpu() if have.device.type == "neuron" else have,
            want,
            equal_nan=True,
            check_stride=False,
            **TOLERANCES.get(want.dtype, {}),
        )


@pytest.mark.parametrize(
    ("op", "dtype"),
    op_cases(
        "compiled",
        dtypes=DTYPES,
        where=lambda op: op.name not in RANDOM | UNINITIALISED,
        one_in=50,
    ),
)
def test_a_compiled_op_gives_the_cpus_result(op, dtype):
    for number, sample in enumerate(islice(samples_of(op, dtype), SAMPLES)):
        given = Arguments.of(sample, op)
        expected = outcome_of(op.op, given.placed(Placement("cpu")))
        if expected.error is not None:
            continue
        outcome = outcome_of(compiled(op.op, "neuron"), given.placed(Placement()))
        try:
            assert_close(outcome, expected)
        except AssertionError as error:
            if fails_the_same_way_on_the_cpu(op.op, given, expected):
                continue
            error.add_note(f"sample {number}: {sample.summary()}")
            raise

"""What the CPU refuses, the device refuses with the same class of error and the same words."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from torch.testing._internal.opinfo.core import ErrorInput, OpInfo

from ops.calls import Arguments, Outcome, assert_same_error, outcome_of
from ops.catalogue import OPS, marked
from ops.under_test import DEVICE

OPS_WITH_ERRORS = [op for op in OPS if op.error_inputs_func is not None]


def errors_of(op: OpInfo, device: str) -> Iterator[tuple[ErrorInput, Outcome]]:
    for given in op.error_inputs(device):
        yield given, outcome_of(op.op, Arguments.of(given.sample_input, op))


def pairs_of(op: OpInfo) -> Iterator[tuple[tuple[ErrorInput, Outcome], tuple[ErrorInput, Outcome]]]:
    """The same error inputs on both; the definitions leave some out by the device's name."""
    left = list(errors_of(op, DEVICE))
    for theirs in errors_of(op, "cpu"):
        if left and left[0][0].error_regex == theirs[0].error_regex:
            yield theirs, left.pop(0)


@pytest.mark.parametrize(
    "op", [marked("error_inputs", op.formatted_name, op, one_in=1) for op in OPS_WITH_ERRORS]
)
def test_device_refuses_what_the_cpu_refuses(op):
    pairs = list(pairs_of(op))
    assert pairs, "no error input in common"
    for number, (theirs, ours) in enumerate(pairs):
        if theirs[1].error is None:
            assert ours[1].error is None, f"input {number}: only the device: {ours[1].error}"
            continue
        try:
            assert_same_error(ours[1].error, theirs[1].error, pattern=theirs[0].error_regex)
        except AssertionError as error:
            error.add_note(f"input {number}: {ours[0].sample_input.summary()}")
            raise

"""What the CPU refuses, the device refuses with the same class of error and the same words."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

import pytest
from torch.testing._internal.opinfo.core import ErrorInput, OpInfo

from ops.calls import Arguments, Outcome, assert_same_error, outcome_of
from ops.catalogue import OPS, marked
from ops.under_test import DEVICE


def has_errors(op: OpInfo) -> bool:
    """Whether the definition knows a wrong input; some yield none for either device."""
    return op.error_inputs_func is not None and any(
        any(True for _ in op.error_inputs(device)) for device in ("cpu", DEVICE)
    )


def errors_of(op: OpInfo, device: str) -> list[tuple[ErrorInput, Outcome]]:
    return [
        (given, outcome_of(op.op, Arguments.of(given.sample_input, op)))
        for given in op.error_inputs(device)
    ]


def in_common(theirs: Sequence[ErrorInput], ours: Sequence[ErrorInput]) -> dict[int, int]:
    """Ours to theirs; the definitions leave some out by the device's name."""
    matcher = SequenceMatcher(
        None, [e.error_regex for e in theirs], [e.error_regex for e in ours], autojunk=False
    )
    return {
        block.b + offset: block.a + offset
        for block in matcher.get_matching_blocks()
        for offset in range(block.size)
    }


@pytest.mark.parametrize(
    "op",
    [marked("error_inputs", op.formatted_name, op, one_in=1) for op in OPS if has_errors(op)],
)
def test_device_refuses_what_the_cpu_refuses(op):
    theirs, ours = errors_of(op, "cpu"), errors_of(op, DEVICE)
    common = in_common([given for given, _ in theirs], [given for given, _ in ours])
    for number, (given, outcome) in enumerate(ours):
        try:
            if number in common:
                expected = theirs[common[number]][1].error
                if expected is None:
                    assert outcome.error is None, f"only the device: {outcome.error}"
                else:
                    assert_same_error(outcome.error, expected, pattern=given.error_regex)
            else:  # the definition has other words, or this input, for accelerators only
                assert outcome.error is not None
        except AssertionError as error:
            error.add_note(f"input {number}: {given.sample_input.summary()}")
            raise

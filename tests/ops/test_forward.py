"""Every op of the wheel, every dtype of the CPU: the device gives the CPU's result."""

from __future__ import annotations

import pytest

from ops.calls import Arguments, check_call
from ops.catalogue import op_cases, samples_of
from ops.exceptions import RANDOM, SLACK_ULPS, UNINITIALISED


@pytest.mark.parametrize(("op", "dtype"), op_cases("forward"))
def test_op_gives_the_cpus_result(op, dtype):
    values = op.name not in RANDOM | UNINITIALISED
    for number, sample in enumerate(samples_of(op, dtype)):
        try:
            check_call(
                op.op,
                Arguments.of(sample, op),
                values=values,
                slack_ulps=SLACK_ULPS.get(op.name, 0.0),
            )
        except AssertionError as error:
            error.add_note(f"sample {number}: {sample.summary()}")
            raise

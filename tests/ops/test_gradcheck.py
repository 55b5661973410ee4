"""Gradients against finite differences on the device: the wheel's own gradient checks."""

from __future__ import annotations

import re
import unittest
import zlib

import pytest
import torch
from torch.testing._internal.common_utils import TestGradients
from torch.testing._internal.opinfo.core import OpInfo

from ops.catalogue import OPS, marked
from ops.exceptions import RANDOM, UNINITIALISED
from ops.under_test import DEVICE

DIFFERENTIABLE = [
    op
    for op in OPS
    if op.supports_autograd
    and op.name not in RANDOM | UNINITIALISED
    and torch.float64 in op.supported_backward_dtypes("cpu")
]
CHECKS = {
    "backward": lambda op: True,
    "backward_of_backward": lambda op: op.supports_gradgrad,
    "forward_mode": lambda op: op.supports_forward_ad,
}
# Finite differences cost one call an element: one op in so many is checked, the rest is compared
# with the CPU in test_backward.py.
ONE_OP_IN = 4

CASES = [
    marked("gradcheck", f"{op.formatted_name}-{check}", op, check)
    for op in DIFFERENTIABLE
    if zlib.crc32(op.formatted_name.encode()) % ONE_OP_IN == 0
    for check, applies in CHECKS.items()
    if applies(op)
]


def run_check(op: OpInfo, check: str, device: str) -> None:
    suite = TestGradients("_grad_test_helper")
    torch.manual_seed(0)
    if check == "backward_of_backward":
        suite._check_helper(device, torch.float64, op, op.op, "bwgrad_bwgrad")
    else:
        forward = check == "forward_mode"
        suite._grad_test_helper(
            device,
            torch.float64,
            op,
            op.op,
            check_forward_ad=forward,
            check_backward_ad=not forward,
            check_batched_grad=False,
        )


@pytest.mark.parametrize(("op", "check"), CASES)
def test_gradients_agree_with_finite_differences(op, check):
    try:
        run_check(op, check, DEVICE)
    except unittest.SkipTest as skipped:
        pytest.skip(reason=str(skipped))
    except (RuntimeError, AssertionError) as ours:
        # The wheel knows of samples that its own check cannot take, on the CPU neither.
        with pytest.raises(type(ours), match=re.escape(str(ours).replace(DEVICE, "cpu")[:40])):
            run_check(op, check, "cpu")

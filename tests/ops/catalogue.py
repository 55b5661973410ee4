"""Which op is tested with which dtype: every OpInfo of the wheel times the CPU's dtypes.

A fixed tenth of the cases runs everywhere; the others carry the marker `sweep`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import torch
from torch.testing._internal.autograd_function_db import autograd_function_db
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.custom_op_db import custom_op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from ops.exceptions import exception_for

DTYPES = (
    torch.float32,
    torch.bfloat16,
    torch.float16,
    torch.int64,
    torch.bool,
    torch.complex64,
)
# Op definitions of the wheel: ATen's, user-made custom ops, user-made autograd functions.
OPS: tuple[OpInfo, ...] = (*op_db, *custom_op_db, *autograd_function_db)
SAMPLED_ONE_IN = 10
SEED = 1234


def marked(kind: str, name: str, *values: Any, one_in: int = SAMPLED_ONE_IN) -> Any:
    """A parameter set called `name`, with the markers of the test `kind` for it.

    One case in `one_in`, always the same, runs in every test run; the others only in the sweep.
    """
    sampled = zlib.crc32(f"{kind}:{name}".encode()) % one_in == 0
    marks = [] if sampled else [pytest.mark.sweep, pytest.mark.slow]
    reason = exception_for(kind, name)
    if reason is not None:
        marks.append(pytest.mark.skip(reason=reason))
    return pytest.param(*values, id=name, marks=marks)


def op_cases(
    kind: str,
    dtypes_of: Callable[[OpInfo], Iterable[torch.dtype]] = lambda op: op.supported_dtypes("cpu"),
    *,
    dtypes: tuple[torch.dtype, ...] = DTYPES,
    where: Callable[[OpInfo], bool] = lambda op: True,
    one_in: int = SAMPLED_ONE_IN,
) -> list[Any]:
    """Parameters (op, dtype) of a test over ops, in a fixed order."""
    return [
        marked(kind, f"{op.formatted_name}-{str(dtype)[6:]}", op, dtype, one_in=one_in)
        for op in OPS
        if where(op)
        for dtype in dtypes
        if dtype in set(dtypes_of(op))
    ]


def samples_of(op: OpInfo, dtype: torch.dtype, **options: Any) -> Iterator[SampleInput]:
    """The op's sample inputs on the CPU, the same in every run."""
    torch.manual_seed(SEED)
    yield from op.sample_inputs("cpu", dtype, **options)

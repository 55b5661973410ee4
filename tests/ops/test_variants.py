"""The other forms of an op: out=, in-place, method, operator, and inputs in unusual memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing._internal.opinfo.core import OpInfo
from torch.utils._pytree import tree_map_only

from ops.calls import Arguments, check_call, outcome_of
from ops.catalogue import op_cases, samples_of
from ops.exceptions import RANDOM, SLACK_ULPS, UNINITIALISED
from ops.under_test import Placement

# The dtypes that take different paths: 4-byte floats, Trainium's own, 8-byte integers.
DTYPES = (torch.float32, torch.bfloat16, torch.int64)
# Forms of one op over the same samples; more samples of a form add little.
MAX_SAMPLES = 6


def compares_values(op: OpInfo) -> bool:
    return op.name not in RANDOM | UNINITIALISED


def check_samples(
    op: OpInfo, dtype: torch.dtype, function: Callable[..., Any], **options: Any
) -> None:
    """Check `function` with the first samples of the op."""
    for number, sample in enumerate(samples_of(op, dtype)):
        if number == MAX_SAMPLES:
            break
        try:
            check_call(
                function,
                Arguments.of(sample, op),
                values=compares_values(op),
                **options,
                slack_ulps=SLACK_ULPS.get(op.name, 0.0),
            )
        except AssertionError as error:
            error.add_note(f"sample {number}: {sample.summary()}")
            raise


def has(form: str) -> Callable[[OpInfo], bool]:
    return lambda op: getattr(op, form)() is not None


@pytest.mark.parametrize(
    ("op", "dtype"), op_cases("inplace", dtypes=DTYPES, where=has("get_inplace"))
)
def test_inplace_form_gives_the_cpus_result(op, dtype):
    check_samples(op, dtype, op.get_inplace())


@pytest.mark.parametrize(
    ("op", "dtype"), op_cases("method", dtypes=DTYPES, where=has("get_method"))
)
def test_method_form_gives_the_cpus_result(op, dtype):
    check_samples(op, dtype, op.get_method())


@pytest.mark.parametrize(
    ("op", "dtype"), op_cases("operator", dtypes=DTYPES, where=has("get_operator"))
)
def test_operator_form_gives_the_cpus_result(op, dtype):
    check_samples(op, dtype, op.get_operator())


@pytest.mark.parametrize(
    ("op", "dtype"),
    op_cases("inplace_operator", dtypes=DTYPES, where=has("get_inplace_operator")),
)
def test_inplace_operator_gives_the_cpus_result(op, dtype):
    check_samples(op, dtype, op.get_inplace_operator())


def takes_strided_inputs(op: OpInfo) -> bool:
    return "sparse" not in op.name


@pytest.mark.parametrize(
    ("op", "dtype"), op_cases("noncontiguous", dtypes=DTYPES, where=takes_strided_inputs)
)
def test_noncontiguous_inputs_give_the_cpus_result(op, dtype):
    for number, sample in enumerate(samples_of(op, dtype)):
        if number == MAX_SAMPLES:
            break
        given = Arguments.of(sample.noncontiguous(), op)
        try:
            check_call(
                op.op, given, values=compares_values(op), slack_ulps=SLACK_ULPS.get(op.name, 0.0)
            )
        except AssertionError as error:
            error.add_note(f"sample {number}, not contiguous: {sample.summary()}")
            raise


@pytest.mark.parametrize(("op", "dtype"), op_cases("offset", dtypes=DTYPES))
def test_inputs_at_an_odd_storage_offset_give_the_cpus_result(op, dtype):
    check_samples(op, dtype, op.op, shift=3)


def fitting(result: Tensor) -> Tensor:
    return torch.empty_strided(result.shape, result.stride(), dtype=result.dtype).fill_(1)


def spread(result: Tensor) -> Tensor:
    """Every second element of a larger tensor: nothing is contiguous."""
    wide = torch.ones((*result.shape, 2), dtype=result.dtype)
    return wide[..., 0]


def empty(result: Tensor) -> Tensor:
    return torch.empty(0, dtype=result.dtype)


def wrong_shape(result: Tensor) -> Tensor:
    return torch.ones((*result.shape, 3), dtype=result.dtype)


def wrong_dtype(result: Tensor) -> Tensor:
    other = torch.int32 if result.dtype is not torch.int32 else torch.bool
    return torch.ones(result.shape, dtype=other)


@pytest.mark.parametrize("make_out", [fitting, spread, empty, wrong_shape, wrong_dtype])
@pytest.mark.parametrize(
    ("op", "dtype"),
    op_cases("out", dtypes=DTYPES, where=lambda op: op.supports_out and takes_strided_inputs(op)),
)
def test_out_tensors_of_any_form_end_as_on_the_cpu(op, dtype, make_out):
    for number, sample in enumerate(samples_of(op, dtype)):
        if number == MAX_SAMPLES:
            break
        given = Arguments.of(sample, op)
        if "out" in given.kwargs:
            continue
        result = outcome_of(op.op, given.placed(Placement("cpu")))
        if result.error is not None:
            continue
        out = tree_map_only(Tensor, lambda t: make_out(t.detach()), result.value)
        out = tuple(out) if isinstance(out, list | tuple) else out
        with_out = dataclasses.replace(given, kwargs={**given.kwargs, "out": out})
        try:
            check_call(
                op.op, with_out, values=compares_values(op), slack_ulps=SLACK_ULPS.get(op.name, 0.0)
            )
        except AssertionError as error:
            error.add_note(f"sample {number}, out {make_out.__name__}: {sample.summary()}")
            raise

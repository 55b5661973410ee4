"""Inputs that are lazily conjugated or negated, and ops inside inference mode."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from ops.calls import Arguments, check_call
from ops.catalogue import op_cases, samples_of
from ops.exceptions import RANDOM, SLACK_ULPS, UNINITIALISED


def conjugated(tensor: Tensor) -> Tensor:
    """The same values behind a conjugation that is not carried out."""
    return torch.conj(tensor.conj_physical()) if tensor.is_complex() else tensor


def negated(tensor: Tensor) -> Tensor:
    """The same values behind a negation that is not carried out."""
    if tensor.dtype is torch.bool or not tensor.dtype.is_signed:
        return tensor
    return torch._neg_view(-tensor)


def check_with(op: Any, dtype: torch.dtype, change: Any) -> None:
    for number, sample in enumerate(samples_of(op, dtype)):
        given = Arguments.of(sample, op)
        changed = dataclasses.replace(
            given,
            args=tree_map_only(Tensor, change, given.args),
            kwargs=tree_map_only(Tensor, change, given.kwargs),
        )
        try:
            check_call(
                op.op,
                changed,
                values=op.name not in RANDOM | UNINITIALISED,
                slack_ulps=SLACK_ULPS.get(op.name, 0.0),
            )
        except AssertionError as error:
            error.add_note(f"sample {number}, {change.__name__}: {sample.summary()}")
            raise


def strided(op: Any) -> bool:
    return "sparse" not in op.name


@pytest.mark.parametrize(
    ("op", "dtype"), op_cases("conjugated", dtypes=(torch.complex64,), where=strided)
)
def test_lazily_conjugated_inputs_give_the_cpus_result(op, dtype):
    check_with(op, dtype, conjugated)


@pytest.mark.parametrize(
    ("op", "dtype"),
    op_cases(
        "negated",
        dtypes=(torch.float32,),
        where=lambda op: strided(op) and op.test_neg_view,
    ),
)
def test_lazily_negated_inputs_give_the_cpus_result(op, dtype):
    check_with(op, dtype, negated)


@pytest.mark.parametrize(("op", "dtype"), op_cases("inference", dtypes=(torch.float32,)))
def test_op_inside_inference_mode_gives_the_cpus_result(op, dtype):
    values = op.name not in RANDOM | UNINITIALISED
    with torch.inference_mode():
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


@pytest.mark.parametrize(
    ("op", "dtype"),
    op_cases(
        "inference_inplace",
        dtypes=(torch.float32,),
        where=lambda op: op.get_inplace() is not None,
    ),
)
def test_inplace_op_inside_inference_mode_gives_the_cpus_result(op, dtype):
    with torch.inference_mode():
        for sample in samples_of(op, dtype):
            check_call(
                op.get_inplace(),
                Arguments.of(sample, op),
                values=op.name not in RANDOM,
                slack_ulps=SLACK_ULPS.get(op.name, 0.0),
            )

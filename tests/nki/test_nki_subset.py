"""Strict mode reads the kernel's Python as AWS's compiler would."""

from __future__ import annotations

import functools
from enum import Enum

import numpy as np
import pytest

import nki
import nki.language as nl
from nki.errors import StrictSubsetError
from nki.subset import check_subset

X = np.zeros((4, 4), np.float32)


class Plain:
    pass


class Config(nl.NKIObject):
    pass


class Kind(Enum):
    one = 1


def _identity(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))
    return out


def keyword_only(x, *, scale=1.0):
    return _identity(x)


def identity_comparison(x, bias=None):
    return _identity(x) if bias is None else bias


def decorated(x):
    @functools.cache
    def inner():
        return 1

    return _identity(x)


def inner_class(x):
    class Shape:
        rows = 4

    return _identity(x)


def plain_object(x):
    Plain()
    return _identity(x)


def integer_keys(x):
    table = {"a": 1, 2: 3}
    return _identity(x) if table else x


def _pairs(x):
    yield x


def generator(x):
    for item in _pairs(x):
        x = item
    return _identity(x)


def guarded(x):
    try:
        return _identity(x)
    except ValueError:
        return x


def outer_name(x):
    count = 0

    def inner():
        nonlocal count
        count = 1

    inner()
    return _identity(x)


CASES = {
    keyword_only: "scale is keyword-only",
    identity_comparison: "Use == and !=",
    decorated: "inner function inner has a decorator",
    inner_class: r"class Shape must inherit from nl\.NKIObject",
    plain_object: "class Plain must inherit",
    integer_keys: "dict keys must be str, not 2",
    generator: "generators are not accepted",
    guarded: "try is not accepted",
    outer_name: "global and nonlocal are not accepted",
}


@pytest.mark.parametrize("kernel", list(CASES), ids=lambda kernel: kernel.__name__)
def test_construct_runs_and_is_an_error_in_strict_mode(kernel):
    nki.simulate(kernel)(X)
    with pytest.raises(StrictSubsetError, match=CASES[kernel]) as caught:
        nki.simulate(kernel, strict=True)(X)
    assert caught.value.source.path == __file__
    first = kernel.__code__.co_firstlineno
    assert caught.value.source.function in (kernel.__name__, "_pairs")
    assert caught.value.source.function == "_pairs" or first <= caught.value.source.line < first + 9


def test_list_argument():
    def kernel(x, sizes):
        return _identity(x)

    nki.simulate(kernel)(X, [1, 2])
    with pytest.raises(StrictSubsetError, match=r"sizes is a list of 2.*tuple"):
        nki.simulate(kernel, strict=True)(X, [1, 2])


def accepted(x, kind=Kind.one, sizes=(1, 2), options=None):
    config = Config()
    table = {"a": [1, 2.0, "b", None]}
    for size in sizes:
        if kind == Kind.one and options != config:
            table["a"].append(size)
    while len(table["a"]) > 4:
        table["a"].pop()
    with nl.no_reorder():
        return _identity(x)


def test_the_subset_itself_passes():
    assert np.array_equal(nki.simulate(accepted, strict=True)(X), X)
    check_subset(lambda x: x)

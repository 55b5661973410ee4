"""Kernels that the tests call."""

from __future__ import annotations

import pytest
import torch

import nki
import nki.language as nl


@pytest.fixture
def rng():
    return torch.Generator().manual_seed(20261201)


@pytest.fixture
def add():
    """a + scale * b, 128 rows at a time."""

    @nki.jit
    def add(a, b, scale=1.0):
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        for rows in range(0, a.shape[0], 128):
            part = slice(rows, min(rows + 128, a.shape[0]))
            nl.store(out[part], nl.add(nl.load(a[part]), nl.multiply(nl.load(b[part]), scale)))
        return out

    return add


@pytest.fixture
def accumulate():
    """a += b, returns a."""

    @nki.jit
    def accumulate(a, b):
        nl.store(a, nl.add(nl.load(a), nl.load(b)))
        return a

    return accumulate

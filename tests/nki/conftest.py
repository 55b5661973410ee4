"""Each behaviour test runs on every executor: C++ replay, NumPy replay, and step mode."""

from __future__ import annotations

import numpy as np
import pytest

import nki
from nki.simulator import native


@pytest.fixture(params=["native", "numpy", "step"])
def run(request, monkeypatch):
    """run(kernel, *arrays) executes a kernel function on the executor under test."""
    if request.param == "native" and native.library() is None:
        pytest.skip("the C++ core is not built")
    monkeypatch.setenv("NKI_NATIVE_REPLAY", "1" if request.param == "native" else "0")

    def call(kernel, *args, grid=None, **kwargs):
        made = nki.simulate(kernel, step=request.param == "step")
        return (made if grid is None else made[grid])(*args, **kwargs)

    call.name = request.param
    return call


@pytest.fixture(params=["trn2"])
def chip(request, monkeypatch):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", request.param)
    return request.param


@pytest.fixture
def trn3(monkeypatch):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")


@pytest.fixture
def rng():
    return np.random.default_rng(20261201)

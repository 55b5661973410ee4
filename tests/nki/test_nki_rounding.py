"""Stochastic rounding, and values kept in fp32."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
from nki import dtypes
from nki.simulator.rounding import stochastic

NARROW = ("bfloat16", "float16", "float8_e4m3", "float8_e5m2", "float8_e4m3fn")


@pytest.mark.parametrize("dtype", NARROW)
def test_each_value_goes_to_one_of_its_neighbours_and_the_mean_is_the_value(dtype, rng):
    values = np.repeat(rng.uniform(-2, 2, 64).astype(np.float32), 4000).reshape(64, 4000)
    values[0], values[1] = 1.0, 0.0
    rounded = dtypes.to_float32(stochastic(values, dtype, rng), dtype)
    for row, value in zip(rounded, values[:, 0], strict=True):
        neighbours = np.unique(row)
        assert neighbours.size <= 2
        assert neighbours[0] <= value <= neighbours[-1]
        step = neighbours[-1] - neighbours[0]
        assert abs(row.mean() - value) <= 4 * max(step, 1e-9) / np.sqrt(4000)


@pytest.mark.parametrize("dtype", NARROW)
def test_values_that_the_format_has_stay_and_special_values_round_as_usual(dtype, rng):
    row = dtypes.row(dtype)
    codes = np.arange(2 ** (8 * row.itemsize), dtype=f"uint{8 * row.itemsize}")
    exact = dtypes.to_float32(codes.view(row.numpy), dtype)
    again = dtypes.to_float32(stochastic(exact, dtype, rng), dtype)
    np.testing.assert_array_equal(again, exact)
    special = np.array([3.4e38, -3.4e38, np.inf, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(
        dtypes.to_float32(stochastic(special, dtype, rng), dtype),
        dtypes.to_float32(dtypes.cast(special, dtype), dtype),
    )


def halves(x):
    out = nl.ndarray(x.shape, "bfloat16", buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, "bfloat16")
    nisa.tensor_scalar(tile, nl.load(x), nl.multiply, 0.5)
    nl.store(out, tile)
    return out


def test_in_a_kernel_the_seed_decides(monkeypatch, rng):
    x = rng.standard_normal((128, 256), dtype=np.float32)
    exact = nki.jit(halves)(x)
    monkeypatch.setenv("NEURON_RT_STOCHASTIC_ROUNDING_EN", "1")
    first, again = (nki.jit(halves)(x) for _ in range(2))
    monkeypatch.setenv("NEURON_RT_STOCHASTIC_ROUNDING_SEED", "7")
    other = nki.jit(halves)(x)
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != other.tobytes()
    assert first.tobytes() != exact.tobytes()
    unit = np.abs(exact.astype(np.float32)) * 2**-7
    assert (np.abs(first.astype(np.float32) - 0.5 * x) <= unit).all()
    monkeypatch.setenv("NEURON_RT_STOCHASTIC_ROUNDING_SEED", "a")
    with pytest.raises(ValueError, match=r"SEED='a'"):
        nki.jit(halves)(x)


def third(x):
    """x / 3 through a bfloat16 tile, then times 3 in fp32."""
    out = nl.ndarray(x.shape, "float32", buffer=nl.shared_hbm)
    narrow = nl.ndarray(x.shape, "bfloat16")
    wide = nl.ndarray(x.shape, "float32")
    nisa.tensor_scalar(narrow, nl.load(x), nl.multiply, 1 / 3)
    nisa.tensor_scalar(wide, narrow, nl.multiply, 3.0)
    nl.store(out, wide)
    return out


@pytest.mark.parametrize("step", [False, True])
def test_values_between_instructions_keep_fp32(monkeypatch, rng, step):
    x = rng.standard_normal((128, 64), dtype=np.float32)
    kernel = nki.simulate(third, step=step)
    assert np.abs(kernel(x) / x - 1).max() > 1e-3
    monkeypatch.setenv("NKI_PRECISE_FP", "0")
    assert np.abs(nki.simulate(third, step=step)(x) / x - 1).max() < 1e-6


def test_memory_that_something_else_has_written_counts(monkeypatch):
    def kernel(x):
        out = nl.ndarray((128, 4), "float32", buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 4), "bfloat16")
        nisa.tensor_scalar(tile, nl.load(x), nl.multiply, 1 / 3)
        nisa.memset(tile[:, 0:2].view(nl.uint16), 0x3F80)  # the bits of 1.0
        wide = nl.ndarray((128, 4), "float32")
        nisa.tensor_copy(wide, tile)
        nl.store(out, wide)
        return out

    monkeypatch.setenv("NKI_PRECISE_FP", "0")
    result = nki.jit(kernel)(np.ones((128, 4), np.float32))
    np.testing.assert_array_equal(result[0], np.float32([1, 1, 1 / 3, 1 / 3]))
    assert np.float32(1 / 3) != np.float32(ml_dtypes.bfloat16(1 / 3))

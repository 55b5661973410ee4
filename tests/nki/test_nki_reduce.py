"""Reductions, scans, statistics, selections and searches."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from nki_kernels import through

import nki.isa as nisa
import nki.language as nl


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("op", "reference"),
    [("add", np.sum), ("multiply", np.prod), ("maximum", np.max), ("minimum", np.min)],
)
@pytest.mark.parametrize(("shape", "axis"), [((40, 65), 1), ((9, 5, 7), 2), ((9, 5, 7), (1, 2))])
def test_tensor_reduce_matches_numpy(run, rng, op, reference, shape, axis, dtype):
    x = rng.uniform(0.5, 1.5, shape).astype(dtype)
    expected = reference(x.astype(np.float64), axis=axis).reshape(shape[0], -1)
    kernel = through(
        lambda d, t: nisa.tensor_reduce(d, getattr(nl, op), t, axis),
        shape=expected.shape,
        dtype="float32",
    )
    np.testing.assert_allclose(run(kernel, x), expected, rtol=2e-6)


def test_tensor_reduce_negates(run, rng):
    x = rng.standard_normal((16, 20)).astype(np.float32)
    kernel = through(
        lambda d, t: nisa.tensor_reduce(d, nl.maximum, t, 1, negate=True), shape=(16, 1)
    )
    np.testing.assert_array_equal(run(kernel, x), -x.max(1, keepdims=True))


def test_tensor_reduce_works_on_permuted_views(run, rng):
    x = rng.standard_normal((8, 6, 10)).astype(np.float32)
    kernel = through(
        lambda d, t: nisa.tensor_reduce(d, nl.add, t.permute((0, 2, 1)), 2), shape=(8, 10)
    )
    np.testing.assert_allclose(run(kernel, x), x.sum(1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", ["add", "maximum", "multiply", "minimum"])
def test_tensor_scalar_reduce_writes_both_results(run, rng, op):
    x = rng.uniform(0.9, 1.1, (32, 50)).astype(np.float32)

    def kernel(x):
        tile = nl.load(x)
        dst, total = nl.ndarray(tile.shape, nl.float32), nl.ndarray((32, 1), nl.float32)
        nisa.tensor_scalar_reduce(dst, tile, nl.add, 0.125, getattr(nl, op), total)
        out = nl.ndarray((32, 51), nl.float32, buffer=nl.shared_hbm)
        nl.store(out[:, 0:50], dst)
        nl.store(out[:, 50:51], total)
        return out

    out = run(kernel, x)
    shifted = x + np.float32(0.125)
    reference = {"add": np.sum, "maximum": np.max, "multiply": np.prod, "minimum": np.min}[op]
    np.testing.assert_array_equal(out[:, :50], shifted)
    np.testing.assert_allclose(out[:, 50], reference(shifted.astype(np.float64), axis=1), rtol=1e-5)


@pytest.mark.parametrize(("op0", "op1"), [("multiply", "add"), ("add", "maximum")])
@pytest.mark.parametrize("column", [False, True])
def test_scan_follows_its_recurrence(run, rng, op0, op1, column):
    a, b = rng.uniform(-1, 1, (2, 12, 40)).astype(np.float32)
    start = rng.standard_normal((12, 1)).astype(np.float32)
    table = {"multiply": np.multiply, "add": np.add, "maximum": np.maximum}

    def kernel(a, b, start):
        x, y, first = nl.load(a), nl.load(b), nl.load(start)
        dst = nl.ndarray(x.shape, nl.float32)
        initial = first if column else 0.75
        nisa.tensor_tensor_scan(dst, x, y, initial, getattr(nl, op0), getattr(nl, op1))
        out = nl.ndarray(x.shape, nl.float32, buffer=nl.shared_hbm)
        nl.store(out, dst)
        return out

    state = start[:, 0] if column else np.full(12, 0.75, np.float32)
    expected = np.empty_like(a)
    for i in range(40):
        state = table[op1](table[op0](a[:, i], state), b[:, i])
        expected[:, i] = state
    np.testing.assert_array_equal(run(kernel, a, b, start), expected)


def test_cumulative_writes_every_prefix(run, rng):
    x = rng.standard_normal((8, 30)).astype(np.float32)
    kernel = through(lambda d, t: nisa.tensor_scalar_cumulative(d, t, nl.multiply, nl.add, 2.0))
    np.testing.assert_allclose(run(kernel, x), np.cumsum(x * 2.0, axis=1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("width", [8, 11, 512])
def test_bn_statistics_give_mean_and_variance(run, rng, width):
    x = rng.standard_normal((16, width)).astype(np.float32) + 3

    def kernel(x):
        tile = nl.load(x)
        stats, result = nl.ndarray((16, 6), nl.float32), nl.ndarray((16, 2), nl.float32)
        nisa.bn_stats(stats, tile)
        nisa.bn_aggr(result, stats)
        out = nl.ndarray((16, 2), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, result)
        return out

    wide = x.astype(np.float64)
    expected = np.stack([wide.mean(1), wide.var(1)], 1)
    np.testing.assert_allclose(run(kernel, x), expected, rtol=1e-5)


def test_max8_finds_the_largest_in_order(run, rng):
    x = rng.permutation(16 * 40).reshape(16, 40).astype(np.float32)
    kernel = through(lambda d, t: nisa.max8(d, t), shape=(16, 8))
    np.testing.assert_array_equal(run(kernel, x), -np.sort(-x, axis=1)[:, :8])


def test_find_index8_takes_successive_places_for_equal_values(run):
    data = np.array([[5, 1, 5, 2, 5, 3, 0, 0, 9]], np.float32)
    vals = np.array([[9, 5, 5, 5, 5, 3, 7, 0]], np.float32)
    kernel = through(lambda d, t, v: nisa.nc_find_index8(d, t, v), shape=(1, 8), dtype="uint32")
    none = 2**32 - 1
    np.testing.assert_array_equal(run(kernel, data, vals), [[8, 0, 2, 4, none, 5, none, 6]])


def test_match_replace8_replaces_first_matches(run):
    data = np.array([[5, 1, 5, 2, 5, 3, 0, 0, 9]], np.float32)
    vals = np.array([[9, 5, 5, 3, 77, 78, 79, 80]], np.float32)
    kernel = through(lambda d, t, v: nisa.nc_match_replace8(d, t, v, -1.0), shape=(1, 9))
    np.testing.assert_array_equal(run(kernel, data, vals), [[-1, 1, -1, 2, 5, -1, 0, 0, -1]])


@pytest.mark.parametrize("start", [0, 10])
def test_range_select_keeps_a_window_and_its_maximum(run, rng, start):
    x = rng.standard_normal((16, 40)).astype(np.float32)
    low = rng.integers(0, 20, (16, 1)).astype(np.float32)
    high = low + 12

    def kernel(x, low, high):
        tile, first, last = nl.load(x), nl.load(low), nl.load(high)
        dst, peak = nl.ndarray(tile.shape, nl.float32), nl.ndarray((16, 1), nl.float32)
        nisa.range_select(
            dst, tile, nl.greater_equal, nl.less, first, last, reduce_res=peak, range_start=start
        )
        out = nl.ndarray((16, 41), nl.float32, buffer=nl.shared_hbm)
        nl.store(out[:, 0:40], dst)
        nl.store(out[:, 40:41], peak)
        return out

    out = run(kernel, x, low, high)
    place = np.arange(40)[None] + start
    expected = np.where((place >= low) & (place < high), x, np.finfo(np.float32).min)
    np.testing.assert_array_equal(out[:, :40], expected)
    np.testing.assert_array_equal(out[:, 40], expected.max(1))


@pytest.mark.parametrize("reverse", [False, True])
def test_predicated_copy_leaves_the_rest(run, rng, reverse):
    x, y = rng.standard_normal((2, 20, 30)).astype(np.float32)
    mask = rng.integers(0, 2, (20, 30)).astype(np.uint8)

    def kernel(x, y, mask):
        dst, src, predicate = nl.load(x), nl.load(y), nl.load(mask)
        nisa.tensor_copy_predicated(dst, src, predicate, reverse_pred=reverse)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, dst)
        return out

    chosen = mask == 0 if reverse else mask != 0
    np.testing.assert_array_equal(run(kernel, x, y, mask), np.where(chosen, y, x))


def test_select_reduce_chooses_by_predicate(run, rng):
    x = rng.standard_normal((20, 30)).astype(np.float32)
    mask = rng.integers(0, 2, (20, 30)).astype(np.uint8)
    kernel = through(lambda d, t, m: nisa.select_reduce(d, m, t, -5.0))
    np.testing.assert_array_equal(run(kernel, x, mask), np.where(mask != 0, x, -5))


def test_nan_wins_in_maximum_and_minimum(run):
    x = np.array([[1, np.nan, 3, 2] * 9], np.float32)
    kernel = through(lambda d, t: nisa.tensor_reduce(d, nl.maximum, t, 1), shape=(1, 1))
    assert np.isnan(run(kernel, x)).all()

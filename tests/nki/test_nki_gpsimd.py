"""Index patterns, gathers, shuffles, random numbers."""

from __future__ import annotations

import numpy as np
import pytest
from nki_kernels import through

import nki.isa as nisa
import nki.language as nl


def test_iota_counts_along_its_pattern(run):
    def kernel():
        tile = nl.ndarray((4, 3, 5), nl.int32)
        nisa.iota(tile, [[100, 3], [2, 5]], offset=7, channel_multiplier=1000)
        out = nl.ndarray((4, 3, 5), nl.int32, buffer=nl.shared_hbm)
        nl.store(out, tile)
        return out

    p, i, j = np.meshgrid(np.arange(4), np.arange(3), np.arange(5), indexing="ij")
    np.testing.assert_array_equal(run(kernel), 7 + 1000 * p + 100 * i + 2 * j)


@pytest.mark.parametrize("op", ["greater_equal", "less", "equal"])
def test_affine_select_masks_by_position(run, rng, op):
    x = rng.standard_normal((32, 40)).astype(np.float32)
    kernel = through(
        lambda d, t: nisa.affine_select(d, [[-1, 40]], 1, t, -9.0, cmp_op=getattr(nl, op), offset=3)
    )
    place = 3 + np.arange(32)[:, None] - np.arange(40)[None]
    keep = {"greater_equal": place >= 0, "less": place < 0, "equal": place == 0}[op]
    np.testing.assert_array_equal(run(kernel, x), np.where(keep, x, -9))


def test_partition_reduce_leaves_one_row(run, rng):
    x = rng.standard_normal((32, 9)).astype(np.float32)
    kernel = through(lambda d, t: nisa.tensor_partition_reduce(d, nl.maximum, t), shape=(1, 9))
    np.testing.assert_array_equal(run(kernel, x), x.max(0, keepdims=True))


def test_n_gather_picks_elements_of_each_partition(run, rng):
    x = rng.standard_normal((16, 30)).astype(np.float32)
    index = rng.integers(0, 30, (16, 12)).astype(np.uint32)
    kernel = through(lambda d, t, i: nisa.nc_n_gather(d, t, i), shape=(16, 12))
    np.testing.assert_array_equal(
        run(kernel, x, index), np.take_along_axis(x, index.astype(int), 1)
    )


def test_local_gather_shares_indices_among_sixteen_partitions(run, rng):
    x = rng.standard_normal((32, 64)).astype(np.float32)
    index = rng.integers(0, 64, (32, 2)).astype(np.uint16)

    def kernel(x, index):
        tile, places = nl.load(x), nl.load(index)
        dst = nl.zeros((32, 32), x.dtype)
        nisa.local_gather(dst, tile, places)
        out = nl.ndarray((32, 32), x.dtype, buffer=nl.shared_hbm)
        nl.store(out, dst)
        return out

    expected = np.empty((32, 32), np.float32)
    for core in range(2):
        block = slice(16 * core, 16 * core + 16)
        order = [index[16 * core + k % 16, k // 16] for k in range(32)]
        expected[block] = x[block][:, order]
    np.testing.assert_array_equal(run(kernel, x, index), expected)


def test_stream_shuffle_moves_rows_within_quadrants(run, rng):
    x = rng.standard_normal((64, 6)).astype(np.float32)
    mask = [(i * 7 + 3) % 32 for i in range(32)]
    mask[5] = 255

    def kernel(x):
        dst = nl.zeros((64, 6), x.dtype)
        nisa.nc_stream_shuffle(dst, nl.load(x), mask)
        out = nl.ndarray((64, 6), x.dtype, buffer=nl.shared_hbm)
        nl.store(out, dst)
        return out

    expected = np.zeros_like(x)
    for row in range(64):
        if mask[row % 32] != 255:
            expected[row] = x[row // 32 * 32 + mask[row % 32]]
    np.testing.assert_array_equal(run(kernel, x), expected)


def test_nonzero_with_count_compacts_indices(run):
    x = np.zeros((16, 10), np.int32)
    x[0, [1, 4, 9]] = 5

    def kernel(x):
        dst = nl.ndarray((16, 11), nl.int32)
        nisa.memset(dst, 0)
        nisa.nonzero_with_count(dst, nl.load(x), index_offset=100, padding_val=-7)
        out = nl.ndarray((16, 11), nl.int32, buffer=nl.shared_hbm)
        nl.store(out, dst)
        return out

    expected = np.zeros((16, 11), np.int32)
    expected[0] = [101, 104, 109] + [-7] * 7 + [3]
    np.testing.assert_array_equal(run(kernel, x), expected)


def test_sequence_bounds_give_each_segment(run):
    ids = np.array([[1, 1, 2, 2, 2, 0, 0, 3]], np.float32)
    kernel = through(lambda d, t: nisa.sequence_bounds(d, t), shape=(1, 2, 8))
    expected = [[[0, 0, 2, 2, 2, 8, 8, 7], [2, 2, 5, 5, 5, -1, -1, 8]]]
    np.testing.assert_array_equal(run(kernel, ids), expected)


def test_random_numbers_are_uniform_and_repeat_with_their_seed(run):
    def kernel(seed):
        nl.random_seed(nl.load(seed))
        tile = nl.rand((128, 256), nl.float32)
        out = nl.ndarray((128, 256), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, tile)
        return out

    first, again, other = (run(kernel, np.array([[s]], np.int32)) for s in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert first.min() >= 0
    assert first.max() < 1
    # The mean of 32,768 uniform numbers has a standard deviation of 0.0016.
    assert abs(first.mean() - 0.5) < 0.01


def test_dropout_zeroes_about_the_given_share(run):
    x = np.ones((128, 256), np.float32)
    out = run(through(lambda d, t: nisa.dropout(d, t, 0.25)), x)
    assert set(np.unique(out)) == {0.0, 1.0}
    assert abs((out == 0).mean() - 0.25) < 0.015

"""DMA copies, gathers, scatters and transposes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import nki.isa as nisa
import nki.language as nl
from nki.errors import DeviceTrapError


def test_copy_converts_through_fp32(run, rng):
    x = (rng.standard_normal((100, 30)) * 50).astype(np.float32)

    def kernel(x):
        tile = nl.load(x, dtype=nl.bfloat16)
        out = nl.ndarray(x.shape, nl.bfloat16, buffer=nl.shared_hbm)
        nl.store(out, tile)
        return out

    np.testing.assert_array_equal(run(kernel, x), x.astype(ml_dtypes.bfloat16))


def test_copy_between_hbm_tensors_of_different_shape(run, rng):
    x = rng.standard_normal((6, 10, 8)).astype(np.float32)

    def kernel(x):
        out = nl.ndarray((60, 8), x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, x.reshape((60, 8)))
        return out

    np.testing.assert_array_equal(run(kernel, x), x.reshape(60, 8))


def test_arguments_are_updated_in_place(run, rng):
    x = rng.standard_normal((16, 8)).astype(np.float32)
    before = x.copy()

    def kernel(x):
        tile = nl.load(x)
        nisa.tensor_scalar(tile, tile, nl.add, 1.0)
        nl.store(x, tile)
        return x

    out = run(kernel, x)
    np.testing.assert_array_equal(x, before + 1)
    assert out is x


def test_gather_reads_one_row_for_each_partition(run, rng):
    table = rng.standard_normal((50, 24)).astype(np.float32)
    rows = rng.integers(0, 50, (32, 1)).astype(np.int32)

    def kernel(table, rows):
        index = nl.load(rows)
        tile = nl.ndarray((32, 24), table.dtype)
        nisa.dma_copy(tile, table.vector_select(0, index))
        out = nl.ndarray((32, 24), table.dtype, buffer=nl.shared_hbm)
        nl.store(out, tile)
        return out

    np.testing.assert_array_equal(run(kernel, table, rows), table[rows[:, 0]])


def test_scatter_writes_rows_and_skips_indices_out_of_range(run, rng):
    data = rng.standard_normal((8, 16)).astype(np.float32)
    rows = np.array([[3], [0], [99], [5], [-1], [2], [1], [7]], np.int32)

    def kernel(data, rows):
        index, tile = nl.load(rows), nl.load(data)
        out = nl.zeros((9, 16), data.dtype, buffer=nl.shared_hbm)
        target = out.ap([[16, 8], [1, 16]], vector_offset=index)
        nisa.dma_copy(target, tile, oob_mode=nisa.oob_mode.skip)
        return out

    expected = np.zeros((9, 16), np.float32)
    for source, row in enumerate(rows[:, 0]):
        if 0 <= row < 9:
            expected[row] = data[source]
    np.testing.assert_array_equal(run(kernel, data, rows), expected)


def test_index_out_of_range_traps_and_names_the_line(run, rng):
    table = rng.standard_normal((4, 8)).astype(np.float32)
    rows = np.array([[1], [4]], np.int32)

    def kernel(table, rows):
        index = nl.load(rows)
        out = nl.ndarray((2, 8), table.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, table.vector_select(0, index))
        return out

    with pytest.raises(DeviceTrapError, match=r"oob_mode.skip(.|\n)*test_nki_dma.py"):
        run(kernel, table, rows)


def test_select_takes_an_index_from_a_tile(run, rng):
    x = rng.standard_normal((5, 16, 12)).astype(np.float32)
    which = np.array([[3]], np.int32)

    def kernel(x, which):
        index = nl.load(which)
        out = nl.ndarray((16, 12), x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, x.select(0, index))
        return out

    np.testing.assert_array_equal(run(kernel, x, which), x[3])


def test_scalar_offset_scales_with_the_indexed_dimension(run, rng):
    x = rng.standard_normal((64, 32)).astype(np.float32)
    start = np.array([[40]], np.int32)

    def kernel(x, start):
        index = nl.load(start)
        out = nl.ndarray((16, 8), x.dtype, buffer=nl.shared_hbm)
        source = x.ap([[32, 16], [1, 8]], offset=4, scalar_offset=index, indirect_dim=0)
        nisa.dma_copy(out, source)
        return out

    np.testing.assert_array_equal(run(kernel, x, start), x[40:56, 4:12])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.uint8])
@pytest.mark.parametrize("shape", [(16, 40), (8, 4, 16), (2, 3, 4, 8)])
def test_dma_transpose_swaps_first_and_last_axis(run, rng, shape, dtype):
    x = rng.integers(0, 200, shape).astype(dtype)
    axes = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}[len(shape)]

    def kernel(x):
        tile = nl.ndarray(tuple(shape[axis] for axis in axes), x.dtype)
        nisa.dma_transpose(tile, x)
        out = nl.ndarray(tile.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, tile)
        return out

    np.testing.assert_array_equal(run(kernel, x), x.transpose(axes))


def test_dma_compute_adds_sources(run, rng):
    a, b, c = rng.standard_normal((3, 16, 20)).astype(np.float32)

    def kernel(a, b, c):
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        nisa.dma_compute(out, [a, b, c], nl.add)
        return out

    np.testing.assert_array_equal(run(kernel, a, b, c), a + b + c)


def test_dma_compute_accumulates_into_scattered_rows(run, rng):
    table = rng.standard_normal((10, 8)).astype(np.float32)
    update = rng.standard_normal((4, 8)).astype(np.float32)
    rows = np.array([[7], [1], [0], [9]], np.int32)
    expected = table.copy()
    expected[rows[:, 0]] += update

    def kernel(table, update, rows):
        index, tile = nl.load(rows), nl.load(update)
        place = table.ap([[8, 4], [1, 8]], vector_offset=index)
        nisa.dma_compute(place, [place, tile], nl.add)
        return table

    np.testing.assert_array_equal(run(kernel, table, update, rows), expected)


def test_unwritten_output_is_nan(run):
    def kernel(x):
        out = nl.ndarray((4, 4), nl.float32, buffer=nl.shared_hbm)
        nl.store(out[0:2], nl.load(x))
        return out

    out = run(kernel, np.ones((2, 4), np.float32))
    np.testing.assert_array_equal(out[:2], 1)
    assert np.isnan(out[2:]).all()

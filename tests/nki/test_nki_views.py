"""Views against NumPy's: the same offsets and strides, elements and errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nki_kernels import returning

import nki.isa as nisa
import nki.language as nl
from nki.program import layout

VIEWS = {
    "slice": (lambda t: t[:, 1:6], lambda a: a[:, 1:6]),
    "steps": (lambda t: t[:, 0:6:2], lambda a: a[:, 0:6:2]),
    "rows": (lambda t: t[4:8], lambda a: a[4:8]),
    "one row": (lambda t: t[3], lambda a: a[3:4]),
    "last index": (lambda t: t[..., 2], lambda a: a[..., 2]),
    "negative": (lambda t: t[:, -2:], lambda a: a[:, -2:]),
    "permute": (lambda t: t.permute((0, 2, 1)), lambda a: a.transpose(0, 2, 1)),
    "reshape": (lambda t: t.reshape((8, 3, 8)), lambda a: a.reshape(8, 3, 8)),
    "reshape_dim": (lambda t: t.reshape_dim(1, (2, -1)), lambda a: a.reshape(8, 2, 3, 4)),
    "flatten": (lambda t: t.flatten_dims(1, 2), lambda a: a.reshape(8, 24)),
    "expand": (lambda t: t.expand_dim(1), lambda a: a[:, None]),
    "broadcast": (
        lambda t: t[:, 0:1].broadcast(1, 5),
        lambda a: np.broadcast_to(a[:, 0:1], (8, 5, 4)),
    ),
    "slice method": (lambda t: t.slice(2, 1, 4, 2), lambda a: a[:, :, 1:4:2]),
    "select": (lambda t: t.select(1, 2), lambda a: a[:, 2]),
    "ds": (lambda t: t[:, nl.ds(2, 3)], lambda a: a[:, 2:5]),
    "rearrange": (
        lambda t: t.rearrange(("p", ("a", "b"), "c"), ("p", "b", "c", "a"), {"a": 2}),
        lambda a: a.reshape(8, 2, 3, 4).transpose(0, 2, 3, 1),
    ),
    "ap": (
        lambda t: t.ap([[24, 4], [4, 3], [1, 2]], offset=24 * 2 + 5),
        lambda a: np.lib.stride_tricks.as_strided(
            a.reshape(-1)[24 * 2 + 5 :], (4, 3, 2), (96, 16, 4)
        ),
    ),
}


@pytest.mark.parametrize("name", VIEWS)
def test_view_reads_the_same_elements_as_numpy(run, rng, name):
    ours, reference = VIEWS[name]
    x = rng.standard_normal((8, 6, 4)).astype(np.float32)

    def kernel(x):
        view = ours(nl.load(x))
        dst = nl.ndarray(view.shape, view.dtype)
        # The vector engine starts at partitions 0, 32, ...; DMA starts anywhere.
        nisa.dma_copy(dst, view)
        out = nl.ndarray(view.shape, view.dtype, buffer=nl.shared_hbm)
        nl.store(out, dst)
        return out

    np.testing.assert_array_equal(run(kernel, x), reference(x))


@pytest.mark.parametrize("name", ["slice", "steps", "permute", "last index", "ds"])
def test_view_can_be_written(run, rng, name):
    ours, reference = VIEWS[name]
    x = rng.standard_normal((8, 6, 4)).astype(np.float32)

    def kernel(x):
        tile = nl.load(x)
        nisa.memset(ours(tile), 7.0)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, tile)
        return out

    expected = x.copy()
    reference(expected)[...] = 7
    np.testing.assert_array_equal(run(kernel, x), expected)


def test_view_reinterprets_bytes(run, rng):
    x = rng.standard_normal((8, 6)).astype(np.float32)
    out = run(returning(lambda t: nl.copy(t.view(nl.uint16))), x)
    np.testing.assert_array_equal(out, x.view(np.uint16))


def test_writing_through_a_view_changes_the_tensor(run):
    def kernel(x):
        tile = nl.load(x)
        tile[:, 0:2] = tile[:, 2:4]
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, tile)
        return out

    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    np.testing.assert_array_equal(run(kernel, x)[:, :2], x[:, 2:])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.permutations(range(4)),
    st.lists(st.integers(1, 6), min_size=1, max_size=4),
)
def test_restride_agrees_with_numpy_reshape(shape, order, target):
    array = np.zeros(shape, np.int8).transpose([dim for dim in order if dim < len(shape)])
    if np.prod(target) != array.size:
        target = [array.size]
    strides = layout.restride(array.shape, array.strides, target, keep_first=False)
    viewed = array.reshape(target)
    shares = np.shares_memory(viewed, array)
    if strides is None:
        assert not shares
        return
    assert shares
    ours = np.lib.stride_tricks.as_strided(array, target, strides)
    marked = np.arange(array.size, dtype=np.int8).reshape(array.shape)
    array[...] = marked
    np.testing.assert_array_equal(ours, marked.reshape(target))


def test_dynamic_view_reports_itself(run):
    seen = []

    def kernel(x):
        index = nl.ndarray((1, 1), nl.int32)
        nisa.memset(index, 1)
        view = x.select(0, index)
        seen.append((x.is_indirect(), view.is_indirect(), view.shape, x.get_pattern()))
        out = nl.ndarray((1, 4), x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, view)
        return out

    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(run(kernel, x), x[1:2])
    assert seen[0] == (False, True, (4,), [[4, 3], [1, 4]])

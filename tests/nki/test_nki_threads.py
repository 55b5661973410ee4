"""Replay by several threads: the bits of one thread, and no threads where parts need each other."""

from __future__ import annotations

import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
from nki.errors import DeviceTrapError
from nki.simulator import native
from nki.simulator.strands import strands
from nki.specialize import Call

pytestmark = pytest.mark.skipif(native.library() is None, reason="the C++ core is not built")

BLOCKS = 12


def _parts(kernel, *args):
    made = nki.jit(kernel)
    (program,) = made.specialize(Call.bind(made.function, args, {})).programs
    return strands(list(program.instructions()))


def blocks_of_rows(x, w):
    """relu(x_block @ w) for each block of rows; w is loaded once."""
    out = nl.ndarray((x.shape[1], w.shape[1]), "float32", buffer=nl.shared_hbm)
    weights = nl.load(w)
    for rows in range(0, x.shape[1], 128):
        part = nl.ndarray((128, w.shape[1]), "float32", buffer=nl.psum)
        nisa.nc_matmul(part, nl.load(x[:, rows : rows + 128]), weights)
        total = nl.ndarray((128, 1), "float32")
        kept = nl.ndarray((128, w.shape[1]), "float32")
        nisa.activation_reduce(kept, nl.relu, part, nl.add, total)
        for _ in range(4):
            nisa.tensor_scalar(kept, kept, nl.multiply, 0.5, op1=nl.add, operand1=total)
        nl.store(out[rows : rows + 128], kept)
    return out


@pytest.fixture
def operands(rng):
    x = rng.standard_normal((64, 128 * BLOCKS), dtype=np.float32)
    return x, rng.standard_normal((64, 96), dtype=np.float32)


def test_bits_are_those_of_one_thread(monkeypatch, operands):
    results = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("NKI_NUM_THREADS", threads)
        kernel = nki.jit(blocks_of_rows)
        results.append([kernel(*operands).tobytes() for _ in range(3)])
    assert len({bits for calls in results for bits in calls}) == 1


def test_parts_are_the_blocks_and_the_shared_load_comes_first(operands):
    found = _parts(blocks_of_rows, *operands)
    assert len(found.parts) == BLOCKS
    assert found.first == [0]
    assert sorted(position for part in (found.first, *found.parts) for position in part) == list(
        range(1 + BLOCKS * 8)
    )


def chained(x, w):
    out = nl.ndarray(x.shape, "float32", buffer=nl.shared_hbm)
    total = nl.load(x[:, 0:128])
    for rows in range(0, x.shape[1], 128):
        nisa.tensor_tensor(total, total, nl.load(x[:, rows : rows + 128]), nl.add)
        nl.store(out[:, rows : rows + 128], total)
    return out


def overlapping(x, w):
    out = nl.ndarray((64, 128), "float32", buffer=nl.shared_hbm)
    for rows in range(0, x.shape[1], 128):
        nl.store(out[:, 0:100], nl.copy(nl.load(x[:, rows : rows + 100])))
    return out


def read_back(x, w):
    out = nl.ndarray((64, 256), "float32", buffer=nl.shared_hbm)
    nl.store(out[:, 0:128], nl.load(x[:, 0:128]))
    nl.store(out[:, 128:256], nl.copy(nl.load(out[:, 0:128])))
    return out


@pytest.mark.parametrize("kernel", [chained, overlapping, read_back])
def test_parts_that_need_each_other_stay_together(kernel, operands):
    found = _parts(kernel, *operands)
    assert found is None or all(len(part) >= 2 and not found.first for part in found.parts), found
    assert found is None


def test_columns_of_a_result_are_independent(operands):
    def columns(x, w):
        out = nl.ndarray((64, x.shape[1]), "float32", buffer=nl.shared_hbm)
        for start in range(0, x.shape[1], 128):
            nl.store(out[:, start : start + 128], nl.copy(nl.load(x[:, start : start + 128])))
        return out

    assert len(_parts(columns, *operands).parts) == BLOCKS


def test_arguments_that_are_one_array_run_in_order(monkeypatch):
    def shift(a, b):
        """b[i + 1] := a[i], block by block."""
        for block in range(99):
            nl.store(b[block * 4 + 4 : block * 4 + 8], nl.load(a[block * 4 : block * 4 + 4]))
        return b

    monkeypatch.setenv("NKI_NUM_THREADS", "4")
    apart = np.arange(400.0, dtype=np.float32).reshape(400, 1)
    kernel = nki.jit(shift)
    moved = kernel(apart, apart.copy())
    assert np.array_equal(moved[4:], apart[:396])
    same = apart.copy()
    kernel(same, same)
    assert np.array_equal(same, np.tile(apart[:4], (100, 1)))


def test_a_trap_in_a_thread_names_its_line(monkeypatch):
    monkeypatch.setenv("NKI_NUM_THREADS", "2")

    def kernel(x, index):
        out = nl.ndarray((128, 4), "float32", buffer=nl.shared_hbm)
        at = nisa.register_alloc()
        nisa.register_load(at, nl.load(index))
        for row in range(0, 128, 4):
            tile = nl.ndarray((4, 4), "float32")
            nisa.dma_copy(tile, x.select(0, at))
            for _ in range(4):
                nisa.tensor_scalar(tile, tile, nl.add, 1.0)
            nl.store(out[row : row + 4], tile)
        return out

    x = np.zeros((3, 4, 4), np.float32)
    made = nki.jit(kernel)
    assert made(x, np.array([[2]], np.int32))[0, 0] == 4.0
    with pytest.raises(DeviceTrapError, match=r"test_nki_threads\.py"):
        made(x, np.array([[3]], np.int32))


def test_number_of_threads_is_checked(monkeypatch, operands):
    monkeypatch.setenv("NKI_NUM_THREADS", "many")
    with pytest.raises(ValueError, match=r"NKI_NUM_THREADS='many'.*NKI_NUM_THREADS=2"):
        nki.jit(blocks_of_rows)(*operands)

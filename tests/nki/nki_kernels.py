"""Small kernels that put one instruction between a load and a store."""

from __future__ import annotations

import nki.isa as nisa
import nki.language as nl


def through(instruction, *, shape=None, dtype=None, loads=None):
    """A kernel: load all arguments, call instruction(dst, *tiles), store dst."""

    def kernel(*arrays):
        tiles = [nl.load(array) for array in arrays]
        out_shape = tiles[0].shape if shape is None else shape
        out_dtype = tiles[0].dtype if dtype is None else dtype
        dst = nl.ndarray(out_shape, out_dtype)
        instruction(dst, *tiles)
        out = nl.ndarray(out_shape, out_dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, dst)
        return out

    return kernel


def returning(expression, *, dtype=None):
    """A kernel: load all arguments, store expression(*tiles)."""

    def kernel(*arrays):
        tile = expression(*[nl.load(array) for array in arrays])
        if tile.buffer is nl.psum:
            tile = nl.copy(tile)
        out = nl.ndarray(tile.shape, tile.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, tile)
        return out

    return kernel

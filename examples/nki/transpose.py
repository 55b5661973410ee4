"""Transposes three ways, with the modelled time of each: DMA, TensorE, and DMA by element."""

import ml_dtypes
import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl


def by_element(x):
    """A DMA with a permuted source: right, but every element is its own descriptor."""
    out = nl.ndarray((x.shape[1], x.shape[0]), x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load_transpose2d(x))
    return out


def by_dma(x):
    """The DMA engine's own transpose."""
    tile = nl.ndarray((x.shape[1], x.shape[0]), x.dtype)
    nisa.dma_transpose(tile, x)
    out = nl.ndarray(tile.shape, x.dtype, buffer=nl.shared_hbm)
    nl.store(out, tile)
    return out


def by_tensor_engine(x):
    """Load, transpose on TensorE into PSUM, copy back, store."""
    turned = nl.ndarray((x.shape[1], x.shape[0]), x.dtype, buffer=nl.psum)
    nisa.nc_transpose(turned, nl.load(x))
    out = nl.ndarray(turned.shape, x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.copy(turned))
    return out


def main() -> None:
    x = np.random.default_rng(0).standard_normal((128, 128)).astype(ml_dtypes.bfloat16)
    for kernel in (by_element, by_dma, by_tensor_engine):
        np.testing.assert_array_equal(nki.simulate(kernel)(x), x.T)
        print(f"{kernel.__name__:18s} {nki.profile(kernel)(x).total_seconds * 1e6:8.2f} us")


if __name__ == "__main__":
    main()

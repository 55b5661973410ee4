"""Softmax over rows: the maximum, then exponentials and their sum in one instruction."""

import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def softmax(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for start in range(0, x.shape[0], nl.tile_size.pmax):
        rows = slice(start, start + nl.tile_size.pmax)
        tile = nl.load(x[rows])
        column = (tile.shape[0], 1)
        minus_max, total, inverse = (nl.ndarray(column, nl.float32) for _ in range(3))
        nisa.tensor_reduce(minus_max, nl.maximum, tile, axis=1, negate=True)
        powers = nl.ndarray(tile.shape, nl.float32)
        nisa.activation_reduce(powers, nl.exp, tile, nl.add, total, bias=minus_max)
        nisa.reciprocal(inverse, total)
        nisa.tensor_scalar(tile, powers, nl.multiply, inverse)
        nl.store(out[rows], tile)
    return out


def main() -> None:
    x = (np.random.default_rng(0).standard_normal((256, 2048)) * 4).astype(np.float32)
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    expected = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(softmax(x), expected, rtol=2e-5, atol=1e-9)
    print(nki.profile(softmax)(x).report())


if __name__ == "__main__":
    main()

"""RMSNorm over rows with a weight that is loaded once."""

import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def rms_norm(x, weight, epsilon=1e-6):
    rows_total, width = x.shape
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    scale = nl.broadcast_to(nl.load(weight), (nl.tile_size.pmax, width))
    for start in range(0, rows_total, nl.tile_size.pmax):
        rows = slice(start, start + nl.tile_size.pmax)
        tile = nl.load(x[rows])
        squares = nl.ndarray(tile.shape, nl.float32)
        total = nl.ndarray((tile.shape[0], 1), nl.float32)
        nisa.activation_reduce(squares, nl.square, tile, nl.add, total)
        nisa.tensor_scalar(total, total, nl.multiply, 1 / width, op1=nl.add, operand1=epsilon)
        root = nl.rsqrt(total)
        result = nl.ndarray(tile.shape, x.dtype)
        nisa.scalar_tensor_tensor(result, tile, nl.multiply, root, nl.multiply, scale)
        nl.store(out[rows], result)
    return out


def main() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((256, 1024), dtype=np.float32)
    weight = rng.standard_normal((1, 1024), dtype=np.float32)
    expected = x / np.sqrt((x.astype(np.float64) ** 2).mean(1, keepdims=True) + 1e-6) * weight
    np.testing.assert_allclose(rms_norm(x, weight), expected, rtol=2e-5, atol=1e-6)
    print(nki.profile(rms_norm)(x, weight).report())


if __name__ == "__main__":
    main()

"""The smallest kernel: add two arrays, 128 rows at a time."""

import numpy as np

import nki
import nki.language as nl


@nki.jit
def add(a, b):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    for rows in range(0, a.shape[0], nl.tile_size.pmax):
        part = slice(rows, rows + nl.tile_size.pmax)
        nl.store(out[part], nl.add(nl.load(a[part]), nl.load(b[part])))
    return out


def main() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 512, 1024), dtype=np.float32)
    np.testing.assert_array_equal(add(a, b), a + b)
    print(nki.profile(add)(a, b).report())


if __name__ == "__main__":
    main()

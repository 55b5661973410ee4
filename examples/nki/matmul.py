"""A tiled matrix product in five steps, with the modelled gain of each.

The left operand comes transposed, [K, M], as the tensor engine wants it.
"""

import ml_dtypes
import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl

M_TILE, K_TILE, N_TILE = 128, 128, 512


def _shape(lhs_t, rhs):
    return lhs_t.shape[1], lhs_t.shape[0], rhs.shape[1]


def _tile(tensor, row, rows, column, columns):
    return tensor[row * rows : (row + 1) * rows, column * columns : (column + 1) * columns]


def tiled(lhs_t, rhs):
    """1. One output tile at a time; both operands are loaded for every product."""
    m_size, k_size, n_size = _shape(lhs_t, rhs)
    out = nl.ndarray((m_size, n_size), lhs_t.dtype, buffer=nl.shared_hbm)
    for m in range(m_size // M_TILE):
        for n in range(n_size // N_TILE):
            product = nl.ndarray((M_TILE, N_TILE), nl.float32, buffer=nl.psum)
            for k in range(k_size // K_TILE):
                left = nl.load(_tile(lhs_t, k, K_TILE, m, M_TILE))
                right = nl.load(_tile(rhs, k, K_TILE, n, N_TILE))
                nisa.nc_matmul(product, left, right)
            nl.store(_tile(out, m, M_TILE, n, N_TILE), nl.copy(product, lhs_t.dtype))
    return out


def hoisted(lhs_t, rhs):
    """2. The left tiles of a row are loaded once, before the loop over columns."""
    m_size, k_size, n_size = _shape(lhs_t, rhs)
    out = nl.ndarray((m_size, n_size), lhs_t.dtype, buffer=nl.shared_hbm)
    for m in range(m_size // M_TILE):
        left = [nl.load(_tile(lhs_t, k, K_TILE, m, M_TILE)) for k in range(k_size // K_TILE)]
        for n in range(n_size // N_TILE):
            product = nl.ndarray((M_TILE, N_TILE), nl.float32, buffer=nl.psum)
            for k in range(k_size // K_TILE):
                nisa.nc_matmul(product, left[k], nl.load(_tile(rhs, k, K_TILE, n, N_TILE)))
            nl.store(_tile(out, m, M_TILE, n, N_TILE), nl.copy(product, lhs_t.dtype))
    return out


def blocked(lhs_t, rhs, m_block=4):
    """3. Blocks of rows share each right tile."""
    m_size, k_size, n_size = _shape(lhs_t, rhs)
    out = nl.ndarray((m_size, n_size), lhs_t.dtype, buffer=nl.shared_hbm)
    steps = range(k_size // K_TILE)
    for block in range(m_size // (M_TILE * m_block)):
        rows = [block * m_block + i for i in range(m_block)]
        left = [[nl.load(_tile(lhs_t, k, K_TILE, m, M_TILE)) for k in steps] for m in rows]
        for n in range(n_size // N_TILE):
            right = [nl.load(_tile(rhs, k, K_TILE, n, N_TILE)) for k in steps]
            for i, m in enumerate(rows):
                product = nl.ndarray((M_TILE, N_TILE), nl.float32, buffer=nl.psum)
                for k in steps:
                    nisa.nc_matmul(product, left[i][k], right[k])
                nl.store(_tile(out, m, M_TILE, n, N_TILE), nl.copy(product, lhs_t.dtype))
    return out


def wide_loads(lhs_t, rhs, m_block=4):
    """4. One DMA fills a whole row block: fewer, longer descriptors."""
    m_size, k_size, n_size = _shape(lhs_t, rhs)
    out = nl.ndarray((m_size, n_size), lhs_t.dtype, buffer=nl.shared_hbm)
    steps = range(k_size // K_TILE)
    width = M_TILE * m_block
    for block in range(m_size // width):
        left = [nl.load(_tile(lhs_t, k, K_TILE, block, width)) for k in steps]
        for n in range(n_size // N_TILE):
            right = [nl.load(_tile(rhs, k, K_TILE, n, N_TILE)) for k in steps]
            for i in range(m_block):
                product = nl.ndarray((M_TILE, N_TILE), nl.float32, buffer=nl.psum)
                for k in steps:
                    part = left[k][:, i * M_TILE : (i + 1) * M_TILE]
                    nisa.nc_matmul(product, part, right[k])
                m = block * m_block + i
                nl.store(_tile(out, m, M_TILE, n, N_TILE), nl.copy(product, lhs_t.dtype))
    return out


def resident(lhs_t, rhs):
    """5. The right operand stays in SBUF; copies out of PSUM alternate between two engines."""
    m_size, k_size, n_size = _shape(lhs_t, rhs)
    out = nl.ndarray((m_size, n_size), lhs_t.dtype, buffer=nl.shared_hbm)
    steps = range(k_size // K_TILE)
    right = [nl.load(rhs[k * K_TILE : (k + 1) * K_TILE]) for k in steps]
    left = [nl.load(lhs_t[k * K_TILE : (k + 1) * K_TILE]) for k in steps]
    for m in range(m_size // M_TILE):
        row = nl.ndarray((M_TILE, n_size), lhs_t.dtype)
        for n in range(n_size // N_TILE):
            product = nl.ndarray((M_TILE, N_TILE), nl.float32, buffer=nl.psum)
            for k in steps:
                nisa.nc_matmul(
                    product,
                    left[k][:, m * M_TILE : (m + 1) * M_TILE],
                    right[k][:, n * N_TILE : (n + 1) * N_TILE],
                )
            engine = nisa.engine.vector if n % 2 else nisa.engine.scalar
            nisa.tensor_copy(row[:, n * N_TILE : (n + 1) * N_TILE], product, engine=engine)
        nl.store(out[m * M_TILE : (m + 1) * M_TILE], row)
    return out


STEPS = (tiled, hoisted, blocked, wide_loads, resident)


def main(size: int = 1024) -> None:
    rng = np.random.default_rng(0)
    lhs_t, rhs = rng.standard_normal((2, size, size)).astype(ml_dtypes.bfloat16)
    expected = lhs_t.astype(np.float32).T @ rhs.astype(np.float32)
    first = None
    for kernel in STEPS:
        out = nki.simulate(kernel)(lhs_t, rhs).astype(np.float32)
        np.testing.assert_allclose(out, expected, rtol=1e-2, atol=0.5)
        timeline = nki.profile(kernel)(lhs_t, rhs)
        first = first or timeline.total_seconds
        busy = 100 * timeline.busy_seconds()["tensor"] / timeline.total_seconds
        print(
            f"{kernel.__name__:11s} {timeline.total_seconds * 1e6:9.1f} us  "
            f"{first / timeline.total_seconds:5.2f}x  TensorE {busy:4.1f} %  "
            f"DMA {timeline.dma_bytes / 1e6:7.1f} MB"
        )


if __name__ == "__main__":
    main()

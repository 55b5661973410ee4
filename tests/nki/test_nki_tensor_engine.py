"""Matrix products, accumulation, transposes, MX formats."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import nki.isa as nisa
import nki.language as nl


def _store(tile):
    copy = nl.copy(tile)
    out = nl.ndarray(copy.shape, copy.dtype, buffer=nl.shared_hbm)
    nl.store(out, copy)
    return out


@pytest.mark.parametrize(
    "dtype", [np.float32, ml_dtypes.bfloat16, np.float16, ml_dtypes.float8_e4m3]
)
@pytest.mark.parametrize(("k", "m", "n"), [(128, 128, 512), (1, 7, 3), (33, 1, 100), (64, 128, 1)])
def test_matmul_matches_numpy(run, rng, dtype, k, m, n):
    a, b = (rng.standard_normal((k, size)).astype(dtype) for size in (m, n))

    def kernel(a, b):
        product = nl.ndarray((m, n), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(product, nl.load(a), nl.load(b))
        return _store(product)

    expected = a.astype(np.float64).T @ b.astype(np.float64)
    np.testing.assert_allclose(run(kernel, a, b), expected, rtol=1e-5, atol=1e-4)


def _accumulating(flags):
    def kernel(a, b):
        left, right = nl.load(a), nl.load(b)
        product = nl.ndarray((8, 16), nl.float32, buffer=nl.psum)
        for flag in flags:
            nisa.nc_matmul(product, left, right, accumulate=flag)
        return _store(product)

    return kernel


@pytest.mark.parametrize(
    ("flags", "times"),
    [
        ((None, None, None), 3),
        ((False, True, True), 3),
        ((None, None, False), 1),
        ((None, True), 2),
    ],
)
def test_accumulation_follows_the_flags(run, rng, flags, times):
    a = rng.integers(-3, 4, (16, 8)).astype(np.float32)
    b = rng.integers(-3, 4, (16, 16)).astype(np.float32)
    np.testing.assert_array_equal(run(_accumulating(flags), a, b), times * (a.T @ b))


def test_partly_written_psum_accumulates_only_there(run):
    ones = np.ones((4, 8), np.float32)

    def kernel(x):
        tile = nl.load(x)
        product = nl.ndarray((8, 8), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(product[:, 0:3], tile, tile[:, 0:3])
        nisa.nc_matmul(product, tile, tile)
        return _store(product)

    expected = np.full((8, 8), 4.0)
    expected[:, :3] = 8
    np.testing.assert_array_equal(run(kernel, ones), expected)


def test_first_product_of_a_device_loop_overwrites(run):
    ones = np.ones((4, 8), np.float32)

    def kernel(x):
        tile = nl.load(x)
        product = nl.ndarray((8, 8), nl.float32, buffer=nl.psum)
        nl.fori_loop(0, 5, lambda i: nisa.nc_matmul(product, tile, tile))
        return _store(product)

    np.testing.assert_array_equal(run(kernel, ones), np.full((8, 8), 20))


def test_psum_bfloat16_result_is_rounded_once_for_each_product(run, rng, trn3):
    a, b = (rng.standard_normal((64, size)).astype(ml_dtypes.bfloat16) for size in (32, 48))

    def kernel(a, b):
        product = nl.ndarray((32, 48), nl.bfloat16, buffer=nl.psum)
        nisa.nc_matmul(product, nl.load(a), nl.load(b))
        nisa.nc_matmul(product, nl.load(a), nl.load(b))
        return _store(product)

    once = (a.astype(np.float32).T @ b.astype(np.float32)).astype(ml_dtypes.bfloat16)
    expected = 2 * once.astype(np.float32)
    np.testing.assert_allclose(
        run(kernel, a, b).astype(np.float32), expected, rtol=1.6e-2, atol=0.1
    )


def test_double_row_contracts_both_rows(run, rng):
    a = rng.standard_normal((64, 2, 32)).astype(ml_dtypes.float8_e4m3)
    b = rng.standard_normal((64, 2, 40)).astype(ml_dtypes.float8_e4m3)

    def kernel(a, b):
        product = nl.ndarray((32, 40), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(product, nl.load(a), nl.load(b), perf_mode=nisa.matmul_perf_mode.double_row)
        return _store(product)

    expected = np.einsum("krm,krn->mn", a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_allclose(run(kernel, a, b), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int32, np.uint8])
def test_transpose_moves_bits(run, rng, dtype):
    x = rng.integers(0, 100, (48, 96)).astype(dtype)

    def kernel(x):
        turned = nl.ndarray((96, 48), x.dtype, buffer=nl.psum)
        nisa.nc_transpose(turned, nl.load(x))
        return _store(turned)

    np.testing.assert_array_equal(run(kernel, x), x.T)


def test_vector_engine_transposes_small_tiles(run, rng):
    x = rng.standard_normal((32, 16)).astype(np.float32)

    def kernel(x):
        turned = nl.ndarray((16, 32), x.dtype)
        nisa.nc_transpose(turned, nl.load(x), engine=nisa.engine.vector)
        return _store(turned)

    np.testing.assert_array_equal(run(kernel, x), x.T)


def _mx_reference(x, maximum_exponent, kind):
    p, f = x.shape
    scale = np.zeros((p // 8, f // 4), np.uint8)
    codes = np.zeros((p, f), kind)
    for i in range(p // 8):
        for j in range(f // 4):
            block = x[8 * i : 8 * i + 8, 4 * j : 4 * j + 4].astype(np.float64)
            peak = np.abs(block).max()
            exponent = -127 if peak == 0 else int(np.floor(np.log2(peak))) - (maximum_exponent - 1)
            scale[i, j] = exponent + 127
            codes[8 * i : 8 * i + 8, 4 * j : 4 * j + 4] = (block / 2.0**exponent).astype(kind)
    return codes, scale


@pytest.mark.parametrize(
    ("dtype", "exponent", "kind"),
    [
        ("float8_e4m3fn_x4", 8, ml_dtypes.float8_e4m3fn),
        ("float8_e5m2_x4", 15, ml_dtypes.float8_e5m2),
    ],
)
def test_mx_quantisation_and_product_match_a_blockwise_reference(
    run, rng, trn3, dtype, exponent, kind
):
    a = (rng.standard_normal((64, 4 * 16)) * 3).astype(ml_dtypes.bfloat16)
    b = (rng.standard_normal((64, 4 * 20)) * 9).astype(ml_dtypes.bfloat16)
    b[:8, :4] = 0

    def quantised(tile, width):
        data = nl.ndarray((64, width), dtype)
        scale = nl.ndarray((64, width), nl.uint8)
        nisa.memset(scale, 0)
        nisa.quantize_mx(data, tile, scale)
        return data, scale

    def kernel(a, b):
        left, left_scale = quantised(nl.load(a), 16)
        right, right_scale = quantised(nl.load(b), 20)
        product = nl.ndarray((16, 20), nl.float32, buffer=nl.psum)
        nisa.nc_matmul_mx(product, left, right, left_scale, right_scale)
        return _store(product)

    sides = []
    for x in (a, b):
        codes, scale = _mx_reference(x, exponent, kind)
        wide = np.repeat(np.repeat(2.0 ** (scale.astype(int) - 127), 8, 0), 4, 1)
        sides.append((codes.astype(np.float64) * wide).reshape(64, -1, 4))
    expected = np.einsum("kmi,kni->mn", *sides)
    np.testing.assert_allclose(run(kernel, a, b), expected, rtol=1e-5, atol=1e-3)

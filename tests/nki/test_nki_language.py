"""The functions of nki.language that make new tiles."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from nki_kernels import returning

import nki
import nki.isa as nisa
import nki.language as nl

ERF = np.vectorize(math.erf)

UNARY = {
    "abs": np.abs, "square": np.square, "exp": np.exp, "tanh": np.tanh, "sin": np.sin,
    "relu": lambda x: np.maximum(x, 0), "cos": np.cos, "tan": np.tan, "arctan": np.arctan,
    "ceil": np.ceil, "floor": np.floor,
    "trunc": np.trunc, "negative": np.negative, "sign": np.sign, "erf": ERF,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "silu": lambda x: x / (1 + np.exp(-x)),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "gelu": lambda x: x * (1 + ERF(x / math.sqrt(2))) / 2,
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_unary_function_matches_numpy(run, rng, name):
    x = rng.uniform(-20, 20, (40, 60)).astype(np.float32)
    x[0, :6] = [0.0, 1.0, -1.0, 0.5, -0.5, 2.5]
    out = run(returning(lambda t: getattr(nl, name)(t)), x)
    expected = UNARY[name](x.astype(np.float64))
    tolerance = 2e-3 if name == "tan" else 4e-6
    np.testing.assert_allclose(out, expected, rtol=tolerance, atol=4e-6)


@pytest.mark.parametrize("name", ["log", "sqrt", "rsqrt", "reciprocal"])
def test_function_of_positive_numbers_matches_numpy(run, rng, name):
    table = {
        "log": np.log,
        "sqrt": np.sqrt,
        "rsqrt": lambda x: x**-0.5,
        "reciprocal": lambda x: 1 / x,
    }
    x = rng.uniform(0.01, 100, (40, 60)).astype(np.float32)
    out = run(returning(lambda t: getattr(nl, name)(t)), x)
    np.testing.assert_allclose(out, table[name](x.astype(np.float64)), rtol=2e-6)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (np.float32, ml_dtypes.bfloat16, "float32"),
        (np.float16, ml_dtypes.bfloat16, "float32"),
        (np.int8, np.uint8, "int16"),
        (np.int32, np.uint32, "float32"),
        (np.int16, np.float16, "float16"),
    ],
)
def test_two_operands_promote(run, first, second, expected):
    a, b = np.ones((4, 4), first), np.ones((4, 4), second)
    out = run(returning(lambda x, y: nl.add(x, y)), a, b)
    assert out.dtype == np.dtype(getattr(np, expected))
    np.testing.assert_array_equal(out.astype(np.float32), 2)


@pytest.mark.parametrize(
    ("scalar", "dtype", "expected"), [(2, np.int8, np.int32), (1.5, np.float16, np.float32)]
)
def test_numbers_promote_like_int32_and_float32(run, scalar, dtype, expected):
    out = run(returning(lambda x: nl.multiply(x, scalar)), np.ones((4, 4), dtype))
    assert out.dtype == expected
    np.testing.assert_array_equal(out, scalar)


@pytest.mark.parametrize("name", ["sum", "max", "min", "mean", "prod"])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reduction_matches_numpy(run, rng, name, keepdims):
    x = rng.uniform(0.5, 1.5, (16, 6, 9)).astype(np.float32)
    out = run(returning(lambda t: getattr(nl, name)(t, (2,), keepdims=keepdims)), x)
    expected = getattr(np, name)(x.astype(np.float64), axis=2, keepdims=keepdims)
    np.testing.assert_allclose(out, expected, rtol=1e-5)


def test_variance_matches_numpy(run, rng):
    x = rng.standard_normal((16, 50)).astype(np.float32)
    out = run(returning(lambda t: nl.var(t, 1)), x)
    np.testing.assert_allclose(out[:, 0], x.astype(np.float64).var(1), rtol=1e-5)


def test_softmax_matches_its_formula(run, rng):
    x = (rng.standard_normal((64, 100)) * 5).astype(np.float32)
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    out = run(returning(lambda t: nl.softmax(t)), x)
    np.testing.assert_allclose(out, powers / powers.sum(1, keepdims=True), rtol=1e-5, atol=1e-8)


def test_rms_norm_matches_its_formula(run, rng):
    x = rng.standard_normal((64, 100)).astype(np.float32)
    w = rng.standard_normal((1, 100)).astype(np.float32)
    out = run(returning(lambda t, s: nl.rms_norm(t, s, 1, 100)), x, w)
    wide = x.astype(np.float64)
    expected = wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-6) * w
    np.testing.assert_allclose(out, expected, rtol=2e-5, atol=1e-6)


def test_where_takes_tiles_and_numbers(run, rng):
    x, y = rng.standard_normal((2, 16, 20)).astype(np.float32)
    kernel = returning(lambda a, b: nl.where(nl.greater(a, b), a, -3.0))
    np.testing.assert_array_equal(run(kernel, x, y), np.where(x > y, x, -3))


@pytest.mark.parametrize("transpose_x", [False, True])
def test_matmul_matches_numpy(run, rng, transpose_x):
    x, y = (
        rng.standard_normal((32, 48)).astype(np.float32),
        rng.standard_normal((48, 600)).astype(np.float32),
    )
    given_x = np.ascontiguousarray(x.T) if transpose_x else x
    out = run(returning(lambda a, b: nl.matmul(a, b, transpose_x=transpose_x)), given_x, y)
    np.testing.assert_allclose(out, x @ y, rtol=1e-4, atol=1e-4)


def test_constants_and_identity(run):
    table = np.arange(12, dtype=np.float32).reshape(3, 4)

    def kernel():
        out = nl.ndarray((3, 4), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(out, nl.shared_constant(table))
        eye = nl.ndarray((5, 5), nl.bfloat16, buffer=nl.shared_hbm)
        first = nl.shared_identity_matrix(5, nl.bfloat16)
        assert nl.shared_identity_matrix(5, nl.bfloat16) is first
        nl.store(eye, first)
        return out, eye

    out, eye = run(kernel)
    np.testing.assert_array_equal(out, table)
    np.testing.assert_array_equal(eye.astype(np.float32), np.eye(5))


def test_broadcast_to_repeats_partitions_and_columns(run, rng):
    row = rng.standard_normal((1, 30)).astype(np.float32)
    out = run(returning(lambda t: nl.copy(nl.broadcast_to(t, (16, 30)))), row)
    np.testing.assert_array_equal(out, np.broadcast_to(row, (16, 30)))


def test_load_transpose2d_swaps_axes(run, rng):
    x = rng.standard_normal((40, 16)).astype(np.float32)

    def kernel(x):
        tile = nl.load_transpose2d(x)
        out = nl.ndarray(tile.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, tile)
        return out

    np.testing.assert_array_equal(run(kernel, x), x.T)


def test_tile_grid_covers_a_tensor_with_a_remainder(run, rng):
    x = rng.standard_normal((300, 16)).astype(np.float32)

    def kernel(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        grid, target = nl.tiles(x), nl.tiles(out)
        assert grid.shape == (3, 1)
        assert grid.is_remainder
        for place in range(len(grid)):
            nl.store(target[place], nl.multiply(nl.load(grid[place]), 2.0))
        return out

    np.testing.assert_array_equal(run(kernel, x), 2 * x)


def test_device_print_shows_values(run, capsys):
    def kernel(x):
        tile = nl.load(x)
        nl.device_print("tile:", tile)
        return x

    run(kernel, np.full((1, 2), 2.5, np.float32))
    assert "tile: [[2.5 2.5]]" in capsys.readouterr().out


def test_functions_outside_of_a_kernel_say_so():
    with pytest.raises(nki.NkiError, match="only inside a kernel"):
        nl.ndarray((4, 4), nl.float32)

"""tensor_tensor, tensor_scalar and relatives against plain NumPy over operators and dtypes."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from nki_kernels import through

import nki.isa as nisa
import nki.language as nl

REFERENCES = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "maximum": lambda a, b: np.where(a > b, a, b),
    "minimum": lambda a, b: np.where(a < b, a, b),
    "divide": lambda a, b: a / b,
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "logical_and": lambda a, b: (a != 0) & (b != 0),
    "logical_or": lambda a, b: (a != 0) | (b != 0),
    "logical_xor": lambda a, b: (a != 0) ^ (b != 0),
    "mod": lambda a, b: a - b * np.floor(a / b),
}
DTYPES = {
    "float32": np.float32,
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
    "float8_e4m3": ml_dtypes.float8_e4m3,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}


def _data(rng, shape, dtype):
    values = rng.integers(-6, 7, shape) / 2
    values[values == 0] = 1.5
    values[0, :3] = 0
    return values.astype(np.float32).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", [name for name in REFERENCES if name not in ("mod", "divide")])
def test_tensor_tensor_matches_numpy(run, rng, op, dtype):
    a, b = (_data(rng, (67, 33), DTYPES[dtype]) for _ in range(2))
    out = run(through(lambda d, x, y: nisa.tensor_tensor(d, x, y, getattr(nl, op))), a, b)
    expected = REFERENCES[op](a.astype(np.float32), b.astype(np.float32))
    np.testing.assert_array_equal(out, expected.astype(np.float32).astype(DTYPES[dtype]))


@pytest.mark.parametrize("op", ["mod", "divide"])
def test_simulator_only_operators_match_numpy(run, rng, op):
    a, b = rng.uniform(1, 9, (2, 16, 40)).astype(np.float32)
    out = run(through(lambda d, x, y: nisa.tensor_tensor(d, x, y, getattr(nl, op))), a, b)
    np.testing.assert_allclose(out, REFERENCES[op](a, b), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("column", [False, True])
@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "maximum", "greater"])
def test_tensor_scalar_takes_numbers_and_columns(run, rng, op, column, reverse):
    data = _data(rng, (64, 50), np.float32)
    other = rng.standard_normal((64, 1)).astype(np.float32)
    if column:
        kernel = through(
            lambda d, x, c: nisa.tensor_scalar(d, x, getattr(nl, op), c, reverse0=reverse)
        )
        out, second = run(kernel, data, other), other
    else:
        kernel = through(
            lambda d, x: nisa.tensor_scalar(d, x, getattr(nl, op), 1.25, reverse0=reverse)
        )
        out, second = run(kernel, data), np.float32(1.25)
    pair = (second, data) if reverse else (data, second)
    np.testing.assert_array_equal(out, REFERENCES[op](*pair).astype(np.float32))


def test_tensor_scalar_applies_two_operators_in_order(run, rng):
    data = rng.standard_normal((128, 64)).astype(np.float32)
    scale = rng.standard_normal((128, 1)).astype(np.float32)
    kernel = through(
        lambda d, x, s: nisa.tensor_scalar(
            d, x, nl.multiply, s, op1=nl.subtract, operand1=2.0, reverse1=True
        )
    )
    np.testing.assert_array_equal(run(kernel, data, scale), np.float32(2.0) - data * scale)


@pytest.mark.parametrize("flip0", [False, True])
@pytest.mark.parametrize("flip1", [False, True])
def test_scalar_tensor_tensor_honours_reverse_flags(run, rng, flip0, flip1):
    data, tile = rng.standard_normal((2, 40, 33)).astype(np.float32)
    kernel = through(
        lambda d, x, y: nisa.scalar_tensor_tensor(
            d, x, nl.subtract, 0.5, nl.subtract, y, reverse0=flip0, reverse1=flip1
        )
    )
    inner = np.float32(0.5) - data if flip0 else data - np.float32(0.5)
    expected = tile - inner if flip1 else inner - tile
    np.testing.assert_array_equal(run(kernel, data, tile), expected)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int16, np.uint8])
@pytest.mark.parametrize("op", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bitwise_operators_work_on_patterns(run, rng, op, dtype):
    info = np.iinfo(dtype)
    a, b = rng.integers(info.min, info.max, (2, 32, 20), dtype=dtype, endpoint=True)
    out = run(through(lambda d, x, y: nisa.tensor_tensor(d, x, y, getattr(nl, op))), a, b)
    table = {"bitwise_and": a & b, "bitwise_or": a | b, "bitwise_xor": a ^ b}
    np.testing.assert_array_equal(out, table[op])


def test_right_shift_brings_in_zeros(run):
    a = np.array([[-1, -8, 7, 1]], np.int32)
    out = run(through(lambda d, x: nisa.tensor_scalar(d, x, nl.right_shift, 1)), a)
    np.testing.assert_array_equal(out, [[0x7FFFFFFF, 0x7FFFFFFC, 3, 0]])


def test_shift_by_the_whole_width_gives_zero(run):
    a = np.array([[5, 6]], np.uint32)
    out = run(through(lambda d, x: nisa.tensor_scalar(d, x, nl.left_shift, 32)), a)
    np.testing.assert_array_equal(out, [[0, 0]])


def test_int32_is_exact_on_gpsimd_and_fp32_on_vector(run):
    a = np.full((1, 4), 2**24 + 1, np.int32)
    b = np.ones((1, 4), np.int32)
    add = through(lambda d, x, y: nisa.tensor_tensor(d, x, y, nl.add))
    vector = through(lambda d, x, y: nisa.tensor_tensor(d, x, y, nl.add, engine=nisa.engine.vector))
    np.testing.assert_array_equal(run(add, a, b), np.full((1, 4), 2**24 + 2))
    # 2^24 + 1 is not an fp32 number: it becomes 2^24, and the sum 2^24 + 1 rounds to even.
    np.testing.assert_array_equal(run(vector, a, b), np.full((1, 4), 2**24))


@pytest.mark.parametrize(
    ("dtype", "values", "expected"),
    [
        (np.int8, [0.5, 1.5, 2.5, -0.5, 200, -200, np.nan], [0, 2, 2, 0, 127, -128, 0]),
        (np.uint8, [0.5, 1.5, -3, 300, 254.5, 255.4, np.nan], [0, 2, 0, 255, 254, 255, 0]),
        (np.int32, [3e9, -3e9, 2.5, 3.5, -2.5, 0], [2**31 - 1, -(2**31), 2, 4, -2, 0]),
        (np.uint16, [65535.5, 65534.5, -1, 7.5, 8.5, 0, 1], [65535, 65534, 0, 8, 8, 0, 1]),
    ],
)  # fmt: skip
def test_float_to_integer_rounds_to_even_and_saturates(run, dtype, values, expected):
    data = np.array([values], np.float32)
    out = run(through(lambda d, x: nisa.tensor_copy(d, x), dtype=np.dtype(dtype).name), data)
    np.testing.assert_array_equal(out, np.array([expected], dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_cast_rounds_to_nearest_even_on_random_bits(run, rng, dtype):
    bits = rng.integers(0, 2**32, (128, 512), dtype=np.uint32)
    exponents = rng.integers(110, 144, (128, 512)).astype(np.uint32)
    data = ((bits & 0x807FFFFF) | (exponents << 23)).view(np.float32)
    data[0, :4] = [np.inf, -np.inf, np.nan, 0.0]
    out = run(through(lambda d, x: nisa.tensor_copy(d, x), dtype=dtype), data)
    with np.errstate(over="ignore"):
        expected = data.astype(DTYPES[dtype])
    nan = np.isnan(expected.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(out.astype(np.float32)), nan)
    np.testing.assert_array_equal(out[~nan], expected[~nan])


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_code_of_a_small_float_reads_back(run, dtype):
    kind = np.dtype(DTYPES[dtype])
    if kind.itemsize > 2:
        pytest.skip("only formats of at most 16 bits are enumerated")
    count = 256**kind.itemsize
    codes = np.arange(count, dtype=f"u{kind.itemsize}").reshape(-1, min(count, 512)).view(kind)
    codes = codes[:128]
    out = run(through(lambda d, x: nisa.tensor_copy(d, x), dtype="float32"), codes)
    np.testing.assert_array_equal(out, codes.astype(np.float32))


def test_tfloat32_keeps_ten_mantissa_bits(run):
    data = np.array([[1 + 2**-10, 1 + 2**-11, 1 + 3 * 2**-11, math.pi]], np.float32)
    out = run(through(lambda d, x: nisa.tensor_copy(d, x), dtype="tfloat32"), data)
    third = 1 + 2**-9  # halfway, to even
    np.testing.assert_array_equal(out[0, :3], np.float32([1 + 2**-10, 1, third]))
    assert out[0, 3] == np.float32(round(math.pi * 2**9) / 2**9)

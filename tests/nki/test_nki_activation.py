"""The scalar engine's functions against float64 formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from nki_kernels import through

import nki.isa as nisa
import nki.language as nl

ERF = np.vectorize(math.erf)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _gelu_sigmoid_dx(x):
    s = _sigmoid(1.702 * x)
    return s + 1.702 * x * s * (1 - s)


FUNCTIONS = {
    "copy": lambda x: x,
    "square": lambda x: x * x,
    "sigmoid": _sigmoid,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * (1 + ERF(x / math.sqrt(2))) / 2,
    "gelu_dx": lambda x: (1 + ERF(x / math.sqrt(2))) / 2
    + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi),
    "gelu_apprx_tanh": lambda x: x / 2
    * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu_apprx_sigmoid": lambda x: x * _sigmoid(1.702 * x),
    "gelu_apprx_sigmoid_dx": _gelu_sigmoid_dx,
    "silu": lambda x: x * _sigmoid(x),
    "silu_dx": lambda x: _sigmoid(x) * (1 + x * (1 - _sigmoid(x))),
    "tanh": np.tanh,
    "softplus": lambda x: np.log1p(np.exp(x)),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "erf": ERF,
    "erf_dx": lambda x: 2 / math.sqrt(math.pi) * np.exp(-x * x),
    "exp": np.exp,
    "sign": np.sign,
    "abs": np.abs,
    "arctan": np.arctan,
}  # fmt: skip
POSITIVE = {
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_is_accurate_to_fp32(run, rng, name):
    x = rng.uniform(-8, 8, (128, 200)).astype(np.float32)
    x[0, :5] = [0, -0.0, 1e-6, 0.5, -0.5]
    out = run(through(lambda d, t: nisa.activation(d, getattr(nl, name), t)), x)
    expected = FUNCTIONS[name](x.astype(np.float64))
    np.testing.assert_allclose(out, expected, rtol=2e-6, atol=5e-7)


@pytest.mark.parametrize("name", POSITIVE)
def test_function_of_positive_numbers_is_accurate_to_fp32(run, rng, name):
    x = np.exp(rng.uniform(-20, 20, (64, 100))).astype(np.float32)
    out = run(through(lambda d, t: nisa.activation(d, getattr(nl, name), t)), x)
    np.testing.assert_allclose(out, POSITIVE[name](x.astype(np.float64)), rtol=1e-6)


def test_exp_reaches_its_limits(run):
    x = np.array([[-200, -104, -87.5, 0, 88.5, 89.5, np.inf, -np.inf, np.nan]], np.float32)
    out = run(through(lambda d, t: nisa.activation(d, nl.exp, t)), x)
    with np.errstate(over="ignore"):
        expected = np.exp(x.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1.5e-45)


def test_scale_and_bias_are_applied_before_the_function(run, rng):
    x = rng.standard_normal((32, 64)).astype(np.float32)
    scale, bias = rng.standard_normal((2, 32, 1)).astype(np.float32)
    kernel = through(lambda d, t, s, b: nisa.activation(d, nl.copy, t, bias=b, scale=s))
    np.testing.assert_array_equal(run(kernel, x, scale, bias), x * scale + bias)


def test_reduction_sums_the_results_of_each_partition(run, rng):
    x = rng.standard_normal((64, 300)).astype(np.float32)

    def kernel(data):
        tile = nl.load(data)
        powers = nl.ndarray(tile.shape, nl.float32)
        total = nl.ndarray((64, 1), nl.float32)
        nisa.activation(
            powers,
            nl.exp,
            tile,
            reduce_op=nl.add,
            reduce_res=total,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        out = nl.ndarray((64, 1), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, total)
        return out

    expected = np.exp(x.astype(np.float64)).sum(1, keepdims=True)
    np.testing.assert_allclose(run(kernel, x), expected, rtol=2e-6)


def test_accumulator_is_carried_between_instructions(run):
    x = np.ones((8, 10), np.float32)

    def kernel(data):
        tile = nl.load(data)
        scratch = nl.ndarray(tile.shape, nl.float32)
        total = nl.ndarray((8, 1), nl.float32)
        commands = nisa.reduce_cmd
        for command in (commands.reset_reduce, commands.reduce, commands.reduce):
            nisa.activation(
                scratch, nl.copy, tile, reduce_op=nl.add, reduce_res=total, reduce_cmd=command
            )
        out = nl.ndarray((8, 1), nl.float32, buffer=nl.shared_hbm)
        nl.store(out, total)
        return out

    np.testing.assert_array_equal(run(kernel, x), np.full((8, 1), 30))


def test_activation_reduce_equals_activation_then_sum(run, rng):
    x = rng.standard_normal((16, 40)).astype(np.float32)

    def kernel(data):
        tile = nl.load(data)
        squares, total = nl.ndarray(tile.shape, nl.float32), nl.ndarray((16, 1), nl.float32)
        nisa.activation_reduce(squares, nl.square, tile, nl.add, total, scale=2.0)
        out = nl.ndarray((16, 41), nl.float32, buffer=nl.shared_hbm)
        nl.store(out[:, 0:40], squares)
        nl.store(out[:, 40:41], total)
        return out

    out = run(kernel, x)
    np.testing.assert_array_equal(out[:, :40], (x * 2) ** 2)
    np.testing.assert_allclose(out[:, 40], ((x * 2.0) ** 2).sum(1), rtol=1e-6)


def test_sine_follows_the_tables_outside_of_their_range(run):
    x = np.array([[0.5, -0.5, 9.0]], np.float32)
    out = run(through(lambda d, t: nisa.activation(d, nl.sin, t)), x)
    np.testing.assert_allclose(out, [[math.sin(0.5), -math.sin(0.5), 27.65]], rtol=1e-3)


def test_activate2_combines_operands_before_prelu(run, rng, trn3):
    x = rng.standard_normal((16, 20)).astype(np.float32)
    kernel = through(
        lambda d, t: nisa.activate2(
            d, nl.prelu, t, 2.0, 1.0, nl.multiply, nl.subtract, relu_param=0.25, reverse1=True
        )
    )
    inner = 1 - x * np.float32(2)
    np.testing.assert_array_equal(
        run(kernel, x), np.where(inner >= 0, inner, inner * np.float32(0.25))
    )

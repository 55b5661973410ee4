"""The scalar engine's functions, in fp32. The device's tables approximate the same functions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_PI = np.float32(math.pi)
_SQRT_HALF = math.sqrt(0.5)
_SQRT_2_OVER_PI = np.float32(math.sqrt(2 / math.pi))
_ERF_SERIES_BELOW = 0.5
_ERF_ONE_ABOVE = 6.0


@functools.cache
def _log_scaled_erfc() -> np.polynomial.Chebyshev:
    """log(erfc(x) exp(x^2) / t) over t = 2 / (2 + x), interpolated through math.erfc."""

    def at(t: Array) -> Array:
        x = 2.0 / t - 2.0
        return np.array(
            [math.log(math.erfc(v) / u) + v * v for v, u in zip(x, t, strict=True)], np.float64
        )

    low = 2.0 / (2.0 + _ERF_ONE_ABOVE)
    high = 2.0 / (2.0 + _ERF_SERIES_BELOW)
    return np.polynomial.Chebyshev.interpolate(at, 20, domain=[low, high])


def erf(x: Array) -> Array:
    """Error function, good to fp32 everywhere."""
    wide = np.asarray(x, np.float64)
    magnitude = np.abs(wide)
    small = np.minimum(magnitude, _ERF_SERIES_BELOW)
    square = small * small
    total, term = small.copy(), small.copy()
    for n in range(1, 12):
        term = term * (-square / n)
        total = total + term / (2 * n + 1)
    series = total * (2 / math.sqrt(math.pi))
    large = np.clip(magnitude, _ERF_SERIES_BELOW, _ERF_ONE_ABOVE)
    t = 2.0 / (2.0 + large)
    tail = t * np.exp(_log_scaled_erfc()(t) - large * large)
    result = np.where(magnitude < _ERF_SERIES_BELOW, series, 1.0 - tail)
    result = np.where(magnitude > _ERF_ONE_ABOVE, 1.0, result)
    result = np.where(np.isnan(wide), np.nan, np.copysign(result, wide))
    return result.astype(np.float32)


def _erf_dx(x: Array) -> Array:
    return np.asarray((np.float32(2 / math.sqrt(math.pi)) * np.exp(-x * x)).astype(np.float32))


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e)).astype(np.float32)


def _softplus(x: Array) -> Array:
    return (np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))).astype(np.float32)


def _silu_dx(x: Array) -> Array:
    s = sigmoid(x)
    return np.asarray(s * (1 + x * (1 - s)))


def _gelu(x: Array) -> Array:
    return np.asarray(np.float32(0.5) * x * (1 + erf(x * np.float32(_SQRT_HALF))))


def _gelu_dx(x: Array) -> Array:
    density = np.exp(np.float32(-0.5) * x * x) * np.float32(1 / math.sqrt(2 * math.pi))
    return np.float32(0.5) * (1 + erf(x * np.float32(_SQRT_HALF))) + x * density


def _gelu_tanh(x: Array) -> Array:
    inner = _SQRT_2_OVER_PI * (x + np.float32(0.044715) * x * x * x)
    return np.asarray(np.float32(0.5) * x * (1 + np.tanh(inner)))


def _gelu_sigmoid(x: Array) -> Array:
    return x * sigmoid(np.float32(1.702) * x)


def _gelu_sigmoid_dx(x: Array) -> Array:
    s = sigmoid(np.float32(1.702) * x)
    return np.asarray(s + np.float32(1.702) * x * s * (1 - s))


def _sin(x: Array) -> Array:
    """Outside of [-pi, pi] the device goes on with the cubic of the border."""
    over = x - np.copysign(_PI, x)
    outside = over * over * over / 6 - over
    return np.where(np.abs(x) <= _PI, np.sin(x), outside).astype(np.float32)


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "copy": lambda x: x,
    "square": lambda x: x * x,
    "sigmoid": sigmoid,
    "relu": lambda x: np.maximum(x, np.float32(0)),
    "gelu": _gelu,
    "gelu_dx": _gelu_dx,
    "gelu_apprx_tanh": _gelu_tanh,
    "gelu_apprx_sigmoid": _gelu_sigmoid,
    "gelu_apprx_sigmoid_dx": _gelu_sigmoid_dx,
    "silu": lambda x: x * sigmoid(x),
    "silu_dx": _silu_dx,
    "tanh": np.tanh,
    "softplus": _softplus,
    "mish": lambda x: x * np.tanh(_softplus(x)),
    "erf": erf,
    "erf_dx": _erf_dx,
    "exp": np.exp,
    "sign": np.sign,
    "abs": np.abs,
    "log": np.log,
    "sin": _sin,
    "arctan": np.arctan,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: np.float32(1) / np.sqrt(x),
    "reciprocal": lambda x: np.float32(1) / x,
}


def apply(name: str, x: Array, *, slope: Any = 0.0) -> Array:
    """The function called `name`; `slope` is prelu's factor for negative values."""
    with np.errstate(all="ignore"):
        if name == "prelu":
            return np.where(x >= 0, x, x * slope).astype(np.float32)
        return np.asarray(FUNCTIONS[name](x), np.float32)

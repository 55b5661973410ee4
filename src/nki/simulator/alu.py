"""What each ALU operator computes: arithmetic in fp32, bitwise operators on integer patterns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Function = Callable[[Any, Any], Any]


def _truth(values: Any) -> Array:
    return np.asarray(np.asarray(values).astype(np.float32))


def _abs_max(a: Any, b: Any) -> Any:
    return np.where(np.abs(a) > np.abs(b), a, b).astype(np.float32)


def _abs_min(a: Any, b: Any) -> Any:
    return np.where(np.abs(a) < np.abs(b), a, b).astype(np.float32)


def _rsqrt(a: Any, _: Any) -> Any:
    return np.float32(1) / np.sqrt(a)


ARITHMETIC: dict[str, Function] = {
    "add": np.add,
    "average": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "divide": np.divide,
    "mod": np.mod,
    "fmod": np.fmod,
    "power": np.power,
    "equal": lambda a, b: _truth(np.equal(a, b)),
    "not_equal": lambda a, b: _truth(np.not_equal(a, b)),
    "greater": lambda a, b: _truth(np.greater(a, b)),
    "greater_equal": lambda a, b: _truth(np.greater_equal(a, b)),
    "less": lambda a, b: _truth(np.less(a, b)),
    "less_equal": lambda a, b: _truth(np.less_equal(a, b)),
    "logical_and": lambda a, b: _truth(np.logical_and(a, b)),
    "logical_or": lambda a, b: _truth(np.logical_or(a, b)),
    "logical_xor": lambda a, b: _truth(np.logical_xor(a, b)),
    "abs_max": _abs_max,
    "abs_min": _abs_min,
    "abs": lambda a, _: np.abs(a),
    "square": lambda a, _: np.multiply(a, a),
    "relu": lambda a, _: np.maximum(a, np.float32(0)),
    "rsqrt": _rsqrt,
    "reciprocal": lambda a, _: np.float32(1) / a,
    "bypass": lambda a, _: a,
}

IDENTITY: dict[str, float] = {
    "add": 0.0,
    "average": 0.0,
    "subtract": 0.0,
    "multiply": 1.0,
    "maximum": -np.inf,
    "minimum": np.inf,
    "logical_and": 1.0,
    "logical_or": 0.0,
    "logical_xor": 0.0,
    "abs_max": 0.0,
    "abs_min": np.inf,
}
"""What an accumulator is reset to."""


def unsigned(values: Array) -> Array:
    """The bit patterns of integers."""
    return values.view(np.dtype(f"u{values.dtype.itemsize}"))


def bitwise(op: str, a: Array, b: Any) -> Array:
    """A bitwise operator on the patterns of `a`; a number is taken modulo the width."""
    left = unsigned(np.ascontiguousarray(a))
    kind = left.dtype
    if op == "invert":
        return np.invert(left).view(a.dtype)
    if isinstance(b, np.ndarray):
        right = unsigned(np.ascontiguousarray(b)).astype(kind)
    else:
        right = np.asarray(int(b) % (1 << (8 * kind.itemsize)), kind)
    if op in ("left_shift", "right_shift"):
        width = kind.type(8 * kind.itemsize)
        shift = np.left_shift if op == "left_shift" else np.right_shift
        moved = shift(left, np.minimum(right, width - kind.type(1)))
        return np.asarray(np.where(right >= width, kind.type(0), moved).astype(kind).view(a.dtype))
    table: dict[str, Any] = {
        "bitwise_and": np.bitwise_and,
        "bitwise_or": np.bitwise_or,
        "bitwise_xor": np.bitwise_xor,
    }
    return np.asarray(table[op](left, right)).view(a.dtype)


def integer(op: str, a: Array, b: Array) -> Array | None:
    """Exact 32-bit integer arithmetic with wrap-around, None where only fp32 exists."""
    table: dict[str, Any] = {
        "add": np.add,
        "subtract": np.subtract,
        "multiply": np.multiply,
        "maximum": np.maximum,
        "minimum": np.minimum,
    }
    function = table.get(op)
    return None if function is None else np.asarray(function(a, b))


def apply(op: str, a: Any, b: Any, *, reverse: bool = False) -> Any:
    """`a op b` in fp32, or `b op a`."""
    if reverse:
        a, b = b, a
    with np.errstate(all="ignore"):
        return ARITHMETIC[op](a, b)


def reduce(op: str, values: Array, axis: tuple[int, ...]) -> Array:
    """Reduce fp32 values over axes."""
    with np.errstate(all="ignore"):
        if op in ("add", "subtract"):
            return np.asarray(values.sum(axis=axis, dtype=np.float32))
        if op == "average":
            return np.asarray(values.mean(axis=axis, dtype=np.float32))
        if op == "multiply":
            return np.asarray(values.prod(axis=axis, dtype=np.float32))
        if op == "maximum":
            return np.asarray(values.max(axis=axis))
        if op == "minimum":
            return np.asarray(values.min(axis=axis))
        if op == "logical_and":
            return _truth((values != 0).all(axis=axis))
        if op == "logical_or":
            return _truth((values != 0).any(axis=axis))
        if op == "logical_xor":
            return _truth((values != 0).sum(axis=axis) % 2)
        flat = np.moveaxis(values, axis, range(len(axis)))
        flat = flat.reshape(-1, *flat.shape[len(axis) :])
        result = flat[0]
        for item in flat[1:]:
            result = ARITHMETIC[op](result, item)
        return np.asarray(result)


def reduce_bits(op: str, values: Array, axis: tuple[int, ...]) -> Array:
    """Reduce integer patterns over axes."""
    table: dict[str, Any] = {
        "bitwise_and": np.bitwise_and,
        "bitwise_or": np.bitwise_or,
        "bitwise_xor": np.bitwise_xor,
    }
    return np.asarray(table[op].reduce(values, axis=axis))

"""Data types of tensors, one row each, and the one rule that converts values between them.

A dtype is a plain string ("bfloat16"), as kernels compare and print it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from nki.errors import NkiValidationError

DType = str
Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class DTypeRow:
    """How one dtype is stored and what it can hold."""

    name: str
    numpy: np.dtype[Any]
    kind: str
    """float, int, uint, bool, or packed (several small floats in one container)."""
    mantissa_bits: int = 0
    packed_as: np.dtype[Any] | None = None
    pack: int = 1
    itemsize: int
    """Bytes of one stored element."""


def _row(name: str, numpy: Any, kind: str, mantissa_bits: int = 0, **more: Any) -> DTypeRow:
    return DTypeRow(
        name=name,
        numpy=np.dtype(numpy),
        kind=kind,
        mantissa_bits=mantissa_bits,
        itemsize=int(np.dtype(numpy).itemsize),
        **more,
    )


ROWS: dict[str, DTypeRow] = {
    row.name: row
    for row in (
        _row("uint8", np.uint8, "uint"),
        _row("int8", np.int8, "int"),
        _row("uint16", np.uint16, "uint"),
        _row("int16", np.int16, "int"),
        _row("uint32", np.uint32, "uint"),
        _row("int32", np.int32, "int"),
        _row("bool", np.uint8, "bool"),
        _row("float32", np.float32, "float", 23),
        _row("tfloat32", np.float32, "float", 10),
        _row("bfloat16", ml_dtypes.bfloat16, "float", 7),
        _row("float16", np.float16, "float", 10),
        _row("float8_e4m3", ml_dtypes.float8_e4m3, "float", 3),
        _row("float8_e4m3fn", ml_dtypes.float8_e4m3fn, "float", 3),
        _row("float8_e5m2", ml_dtypes.float8_e5m2, "float", 2),
        _row("float8_e8m0fnu", ml_dtypes.float8_e8m0fnu, "float", 0),
        _row(
            "float8_e5m2_x4",
            np.uint32,
            "packed",
            packed_as=np.dtype(ml_dtypes.float8_e5m2),
            pack=4,
        ),
        _row(
            "float8_e4m3fn_x4",
            np.uint32,
            "packed",
            packed_as=np.dtype(ml_dtypes.float8_e4m3fn),
            pack=4,
        ),
        _row(
            "float4_e2m1fn_x4",
            np.uint16,
            "packed",
            packed_as=np.dtype(ml_dtypes.float4_e2m1fn),
            pack=4,
        ),
    )
}

_ALIASES = {
    "bool_": "bool",
    "fp32": "float32",
    "bf16": "bfloat16",
    "fp16": "float16",
    "tf32": "tfloat32",
    "float8e4": "float8_e4m3",
    "float8e5": "float8_e5m2",
}
_BY_NUMPY = {
    row.numpy: row.name for row in reversed(ROWS.values()) if row.kind not in ("packed", "bool")
} | {np.dtype(np.float32): "float32", np.dtype(np.bool_): "bool"}


def canonical(dtype: Any) -> DType:
    """The dtype's name, from a name, a NumPy dtype, or anything whose text ends in a name."""
    if isinstance(dtype, str):
        name = _ALIASES.get(dtype, dtype)
        if name in ROWS:
            return name
    try:
        found = _BY_NUMPY.get(np.dtype(dtype))
    except TypeError:
        found = None
    if found is None:
        tail = str(dtype).rpartition(".")[2].strip("'>")  # torch.bfloat16, <class 'x.bfloat16'>
        found = _ALIASES.get(tail, tail)
    if found not in ROWS:
        raise NkiValidationError(
            f"{dtype!r} is not a dtype of NKI tensors. Use one of {', '.join(ROWS)}."
        )
    return found


def row(dtype: DType) -> DTypeRow:
    """The row of a canonical name."""
    return ROWS[dtype]


_ITEMSIZE = {name: row.itemsize for name, row in ROWS.items()}


def itemsize(dtype: DType) -> int:
    """Bytes of one element."""
    return _ITEMSIZE[dtype]


def is_integer(dtype: DType) -> bool:
    """True for int8 ... uint32 and bool."""
    return ROWS[dtype].kind in ("int", "uint", "bool")


def is_float(dtype: DType) -> bool:
    """True for the unpacked floating-point types."""
    return ROWS[dtype].kind == "float"


def to_float32(values: Array, dtype: DType) -> Array:
    """The engine's view of stored values: fp32. May return `values` itself."""
    if values.dtype == np.float32:
        return values
    if dtype == "bfloat16":
        wide: Array = values.view(np.uint16).astype(np.uint32)
        wide <<= np.uint32(16)
        return wide.view(np.float32)
    return values.astype(np.float32)


def round_tfloat32(values: Array) -> Array:
    """Round fp32 to 10 mantissa bits, to nearest even; NaN and infinity stay."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    odd = (bits >> np.uint32(13)) & np.uint32(1)
    rounded = (bits + np.uint32(0xFFF) + odd) & np.uint32(0xFFFFE000)
    special = (bits & np.uint32(0x7F800000)) == np.uint32(0x7F800000)
    out: Array = np.where(special, bits, rounded).astype(np.uint32).view(np.float32)
    return out


def cast(values: Array, dtype: DType) -> Array:
    """Convert computed values to the stored form of `dtype`.

    Floats round to nearest even. Floats become integers by rounding to nearest even and
    saturating; NaN becomes 0. Integers that do not fit saturate as well.
    """
    target = ROWS[dtype]
    if values.dtype == target.numpy and dtype != "tfloat32":
        return values
    if target.kind == "packed":
        raise NkiValidationError(
            f"Values cannot be converted to {dtype}: packed types are produced by "
            "nisa.quantize_mx or on the host and only moved afterwards."
        )
    if dtype == "tfloat32":
        return round_tfloat32(values)
    if target.kind == "float":
        with np.errstate(over="ignore", invalid="ignore"):
            out: Array = values.astype(np.float32, copy=False).astype(target.numpy)
        return out
    return _to_integer(values, target.numpy)


def _to_integer(values: Array, numpy_dtype: np.dtype[Any]) -> Array:
    limits = np.iinfo(numpy_dtype)
    if values.dtype.kind in "iub":
        return np.clip(values, limits.min, limits.max).astype(numpy_dtype)
    exact = np.rint(values.astype(np.float64))
    exact = np.nan_to_num(exact, nan=0.0, posinf=float(limits.max), neginf=float(limits.min))
    return np.clip(exact, limits.min, limits.max).astype(numpy_dtype)


def unpack(values: Array, dtype: DType) -> Array:
    """Packed containers as fp32, the last axis grown by the pack factor, lowest bits first."""
    packed = ROWS[dtype]
    assert packed.packed_as is not None
    data = np.ascontiguousarray(values)
    if dtype == "float4_e2m1fn_x4":
        nibbles = np.stack([(data >> np.uint16(4 * i)) & np.uint16(15) for i in range(4)], axis=-1)
        codes = nibbles.reshape(*data.shape[:-1], -1).astype(np.uint8)
        return np.asarray(codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32))
    return data.view(packed.packed_as).astype(np.float32)


# OLD promotion rules of two-operand nl functions.
_PROMOTE_SPECIAL: dict[frozenset[str], str] = {
    frozenset(("float16", "bfloat16")): "float32",
    frozenset(("float8_e4m3", "float8_e5m2")): "bfloat16",
    frozenset(("float8_e4m3fn", "float8_e5m2")): "bfloat16",
    frozenset(("int8", "uint8")): "int16",
    frozenset(("int8", "uint16")): "int32",
    frozenset(("int16", "uint16")): "int32",
    frozenset(("int8", "uint32")): "float32",
    frozenset(("int16", "uint32")): "float32",
    frozenset(("int32", "uint32")): "float32",
}


def promote(first: DType, second: DType) -> DType:
    """The dtype of a two-operand nl function whose dtype is not given."""
    if first == second:
        return first
    special = _PROMOTE_SPECIAL.get(frozenset((first, second)))
    if special is not None:
        return special
    a, b = ROWS[first], ROWS[second]
    if (a.kind == "float") != (b.kind == "float"):
        return first if a.kind == "float" else second
    if a.itemsize != b.itemsize:
        return first if a.itemsize > b.itemsize else second
    return first if a.mantissa_bits >= b.mantissa_bits else second


def of_scalar(value: object) -> DType:
    """The dtype that a Python scalar counts as in promotion."""
    if isinstance(value, bool):
        return "uint8"
    if isinstance(value, int):
        return "int32"
    return "float32"

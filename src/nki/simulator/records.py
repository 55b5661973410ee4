"""The records of the C++ core (csrc/stream.h has the same order): codes, views, operands."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from nki.program import layout
from nki.program.registers import NkiScalar
from nki.program.tensor import NkiTensor

OPCODES = {
    "copy": 0, "convert": 1, "fill": 2, "tensor_tensor": 3, "tensor_scalar": 4,
    "scalar_tensor_tensor": 5, "tensor_scalar_reduce": 6, "activation": 7, "reduce": 8,
    "matmul": 9, "transpose": 10, "affine_select": 11, "select": 12, "scan": 13,
    "range_select": 14,
}  # fmt: skip
TYPES = {
    "float32": 0, "bfloat16": 1, "float16": 2, "float8_e4m3": 3, "float8_e5m2": 4, "int32": 5,
    "uint32": 6, "uint8": 7, "bool": 7, "int8": 8, "int16": 9, "uint16": 10, "tfloat32": 11,
    "float8_e4m3fn": 12,
}  # fmt: skip
ALU = {
    "add": 0, "subtract": 1, "multiply": 2, "maximum": 3, "minimum": 4, "divide": 5, "equal": 6,
    "not_equal": 7, "greater": 8, "greater_equal": 9, "less": 10, "less_equal": 11,
    "logical_and": 12, "logical_or": 13, "abs": 14, "square": 15, "relu": 16, "rsqrt": 17,
    "reciprocal": 18, "bypass": 19, "power": 20,
}  # fmt: skip
FUNCTIONS = {
    "copy": 0, "square": 1, "sigmoid": 2, "relu": 3, "silu": 4, "tanh": 5, "exp": 6, "sqrt": 7,
    "rsqrt": 8, "reciprocal": 9, "abs": 10, "gelu_apprx_sigmoid": 11, "gelu_apprx_tanh": 12,
    "log": 13, "sign": 14,
}  # fmt: skip
REDUCTIONS = ("add", "multiply", "maximum", "minimum")

DIMS = 5
ABSENT = [-1, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0]

Words = list[int]
Strides = tuple[int, ...]


class NotEncodable(Exception):  # noqa: N818
    """The core does not have this; NumPy does it."""


def bits_of(value: float) -> int:
    """The 64 bits of a double."""
    return int(struct.unpack("<q", struct.pack("<d", float(value)))[0])


def type_of(tensor: NkiTensor) -> int:
    """The code of a tensor's dtype."""
    code = TYPES.get(tensor.dtype)
    if code is None:
        raise NotEncodable
    return code


def record(
    opcode: str,
    index: int,
    dims: Sequence[int],
    attributes: Sequence[int],
    operands: Sequence[Words],
    numbers: Sequence[float] = (),
) -> Words:
    """One instruction: length, place, dims, attributes, numbers, operands."""
    words = [OPCODES[opcode], 0, index, *dims]
    words += [int(value) for value in attributes] + [0] * (8 - len(attributes))
    words += [bits_of(value) for value in numbers] + [0] * (4 - len(numbers))
    for operand in operands:
        words += operand
    words[1] = len(words)
    return words


def packed(tensor: NkiTensor, strides: Strides, *, type_code: int | None = None) -> Words:
    """A tensor operand; `strides` are in elements, one for each record dimension."""
    if tensor.column_index is not None:
        raise NotEncodable
    size = tensor.itemsize
    register, step, limit = -1, 0, 0
    dynamic = tensor.dynamic
    if dynamic is not None:
        if not isinstance(dynamic.index, NkiScalar):
            raise NotEncodable
        register, step = dynamic.index.index, dynamic.stride * size
        reach = layout.span(tensor.shape, tensor.strides)
        limit = tensor.storage.num_bytes - (reach + 1) * size
    code = type_of(tensor) if type_code is None else type_code
    return [
        tensor.storage.index, code, tensor.offset * size,
        *(step_ * size for step_ in strides), register, step, limit,
    ]  # fmt: skip


def column(value: Any) -> Words:
    """A number, a [P, 1] column, or nothing."""
    if value is None:
        return ABSENT
    if isinstance(value, NkiTensor):
        return packed(value, (value.strides[0] if value.shape[0] > 1 else 0, 0, 0, 0, 0))
    if isinstance(value, NkiScalar):
        raise NotEncodable
    return [-2, 0, bits_of(value), 0, 0, 0, 0, 0, -1, 0, 0]


def restrided(shape: Sequence[int], strides: Strides, target: Sequence[int]) -> Strides:
    """Strides of the same elements under another shape; NotEncodable if there are none."""
    if tuple(shape) == tuple(target):
        return strides
    found = layout.restride(shape, strides, target, keep_first=False)
    if found is None:
        raise NotEncodable
    return found


def common(
    views: Sequence[tuple[Sequence[int], Strides]], *, keep_first: bool = True
) -> tuple[list[int], list[Strides]]:
    """One shape of five dimensions for all views, and each view's strides in it."""
    target: Sequence[int] | None = None
    aligned: list[Strides] = []
    for candidate, _ in views:
        try:
            aligned = [restrided(shape, strides, candidate) for shape, strides in views]
        except NotEncodable:
            continue
        target = candidate
        break
    if target is None:
        raise NotEncodable
    first = 1 if keep_first else 0
    sizes = list(target[:first])
    steps = [list(strides[:first]) for strides in aligned]
    for dim in range(first, len(target)):
        size = target[dim]
        if size == 1:
            continue
        here = [strides[dim] for strides in aligned]
        if len(sizes) > first and all(
            step[-1] == size * now for step, now in zip(steps, here, strict=True)
        ):
            sizes[-1] *= size
            for step, now in zip(steps, here, strict=True):
                step[-1] = now
        else:
            sizes.append(size)
            for step, now in zip(steps, here, strict=True):
                step.append(now)
    missing = DIMS - len(sizes)
    if missing < 0:
        raise NotEncodable
    at = first if len(sizes) > first or not sizes else len(sizes)
    sizes[at:at] = [1] * missing
    for step in steps:
        step[at:at] = [0] * missing
    return sizes, [tuple(step) for step in steps]


def views_of(*tensors: NkiTensor) -> list[tuple[Sequence[int], Strides]]:
    """Shape and strides of each."""
    return [(tensor.shape, tensor.strides) for tensor in tensors]

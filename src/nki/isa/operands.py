"""Checks of argument kinds, before an instruction is built. Hardware limits are in `program`."""

from __future__ import annotations

from typing import Any

import numpy as np

from nki.errors import NkiValidationError
from nki.program.builder import current
from nki.program.enums import Engine
from nki.program.ir import NkiInstruction
from nki.program.registers import NkiScalar
from nki.program.tensor import NkiTensor

Operand = float | NkiTensor
OptionalOperand = float | NkiTensor | None


def tile(value: Any, role: str) -> NkiTensor:
    """`value` as a tensor."""
    if isinstance(value, NkiTensor):
        return value
    unwrapped = getattr(value, "nki_tensor", None)
    if isinstance(unwrapped, NkiTensor):
        return unwrapped
    raise NkiValidationError(
        f"{role} is {value!r} ({type(value).__name__}); it must be a tensor. Make a tile with "
        "nl.ndarray, or pass the array as a kernel argument."
    )


def operand(value: Any, role: str) -> Operand:
    """`value` as a tensor or a number."""
    if isinstance(value, NkiTensor):
        return value
    if isinstance(value, bool | int | float | np.generic):
        return float(value) if isinstance(value, np.floating) else value  # type: ignore[return-value]
    if isinstance(value, NkiScalar):
        return value  # type: ignore[return-value]
    return tile(value, role)


def optional(value: Any, role: str) -> OptionalOperand:
    """`value` as a tensor, a number or None."""
    return None if value is None else operand(value, role)


def emit(
    opcode: str,
    engine: Engine,
    outputs: dict[str, NkiTensor],
    inputs: dict[str, Any],
    attributes: dict[str, Any] | None = None,
    *,
    name: str | None = None,
) -> NkiInstruction:
    """Hand an instruction to the kernel being built; operands that are None are left out."""
    return current().emit(
        opcode,
        engine,
        outputs,
        {role: value for role, value in inputs.items() if value is not None},
        attributes,
        name=name,
    )


def choose(requested: Engine | None, default: Engine) -> Engine:
    """The requested engine, or the default when the kernel leaves it open."""
    return default if requested is None or requested is Engine.unknown else requested

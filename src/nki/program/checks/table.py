"""Opcode to check. The entries register themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from neuron_chip import Chip
from nki.errors import NkiValidationError
from nki.program.ir import NkiInstruction
from nki.program.tensor import NkiTensor

Check = Callable[[NkiInstruction, Chip], None]
CHECKS: dict[str, Check] = {}


def check(*opcodes: str) -> Callable[[Check], Check]:
    """Register a function as the check of some opcodes."""

    def register(function: Check) -> Check:
        for opcode in opcodes:
            assert opcode not in CHECKS
            CHECKS[opcode] = function
        return function

    return register


def fail(instruction: NkiInstruction, message: str) -> NoReturn:
    """Raise the error of an illegal instruction."""
    raise NkiValidationError(f"nisa.{instruction.opcode}: {message}")


def tensor_operand(instruction: NkiInstruction, role: str) -> NkiTensor | None:
    """An input if it is a tensor."""
    value: Any = instruction.inputs.get(role)
    return value if isinstance(value, NkiTensor) else None

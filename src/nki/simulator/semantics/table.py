"""Opcode to meaning. The entries register themselves."""

from __future__ import annotations

from collections.abc import Callable

from nki.program.ir import NkiInstruction
from nki.simulator.memory import Machine

Semantics = Callable[[Machine, NkiInstruction], None]
SEMANTICS: dict[str, Semantics] = {}


def means(opcode: str) -> Callable[[Semantics], Semantics]:
    """Register a function as the meaning of an opcode."""

    def register(function: Semantics) -> Semantics:
        assert opcode not in SEMANTICS
        SEMANTICS[opcode] = function
        return function

    return register

"""Registers and debug output. Barriers and exchange between cores are in `nki.simulator.cores`."""

from __future__ import annotations

from typing import Any

import numpy as np

from nki import dtypes
from nki.program.ir import NkiInstruction
from nki.simulator.memory import Machine
from nki.simulator.semantics.table import means

_OPERATIONS: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "floor_divide": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "left_shift": lambda a, b: a << b,
    "right_shift": lambda a, b: a >> b,
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
    "less": lambda a, b: int(a < b),
    "less_equal": lambda a, b: int(a <= b),
    "greater": lambda a, b: int(a > b),
    "greater_equal": lambda a, b: int(a >= b),
    "equal": lambda a, b: int(a == b),
    "not_equal": lambda a, b: int(a != b),
}


@means("register_operation")
def _register_operation(machine: Machine, instruction: NkiInstruction) -> None:
    left = machine.value(instruction.inputs["left"])
    right = machine.value(instruction.inputs["right"])
    value = _OPERATIONS[instruction.attributes["operator"]](left, right)
    machine.set_register(instruction.attributes["register"], value)


@means("register_move")
def _register_move(machine: Machine, instruction: NkiInstruction) -> None:
    machine.set_register(
        instruction.attributes["register"], machine.value(instruction.inputs["src"])
    )


@means("register_load")
def _register_load(machine: Machine, instruction: NkiInstruction) -> None:
    value = machine.array(instruction.inputs["src"]).reshape(-1)[0]
    machine.set_register(instruction.attributes["register"], int(value))


@means("register_store")
def _register_store(machine: Machine, instruction: NkiInstruction) -> None:
    dst = instruction.outputs["dst"]
    value = machine.value(instruction.inputs["src"])
    machine.store(dst, np.full(dst.shape, value, np.int64))


@means("device_print")
def _device_print(machine: Machine, instruction: NkiInstruction) -> None:
    tensor = instruction.inputs["tensor"]
    values = machine.raw(tensor)
    if dtypes.row(tensor.dtype).kind == "float":
        values = dtypes.to_float32(values, tensor.dtype)
    core = f"[core {machine.core}] " if machine.num_cores > 1 else ""
    print(f"{core}{instruction.attributes['prefix']} {values}")


@means("rank_id")
def _rank_id(machine: Machine, instruction: NkiInstruction) -> None:
    machine.set_register(instruction.attributes["register"], machine.core)

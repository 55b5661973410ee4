"""The engines' accumulator registers: one fp32 for each partition, kept between instructions."""

from __future__ import annotations

from typing import Any

import numpy as np

from nki.program.enums import reduce_cmd
from nki.program.ir import NkiInstruction
from nki.program.tensor import NkiTensor
from nki.simulator import alu
from nki.simulator.memory import Array, Machine


def accumulate(
    machine: Machine, instruction: NkiInstruction, values: Array, op: str, *, init: Any = None
) -> None:
    """Apply the instruction's reduce_cmd to the accumulator and write reduce_res."""
    command = instruction.attributes["reduce_cmd"]
    data = next(iter(instruction.inputs.values()))
    start, count = data.partition_start, values.shape[0]
    register = machine.accumulators[instruction.engine][start : start + count]
    if command is not reduce_cmd.idle:
        if command in (reduce_cmd.reset, reduce_cmd.reset_reduce):
            register[:] = alu.IDENTITY[op]
        elif command is reduce_cmd.load_reduce:
            first = machine.load(init if init is not None else 0.0)
            register[:] = first.reshape(-1) if isinstance(init, NkiTensor) else first
        if command is not reduce_cmd.reset:
            partial = alu.reduce(op, values.reshape(count, -1), (1,))
            register[:] = alu.apply(op, register, partial)
    result = instruction.outputs.get("reduce_res")
    if result is not None:
        sign = -1 if instruction.attributes.get("reduce_res_negate") else 1
        machine.store(result, np.float32(sign) * register)

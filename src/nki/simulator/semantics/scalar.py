"""The scalar engine: table functions."""

from __future__ import annotations

import numpy as np

from nki.program.enums import reduce_cmd
from nki.program.ir import NkiInstruction
from nki.simulator import activations, alu
from nki.simulator.memory import Array, Machine
from nki.simulator.semantics.accumulator import accumulate
from nki.simulator.semantics.table import means
from nki.simulator.semantics.vector import column


def _finish(machine: Machine, instruction: NkiInstruction, values: Array) -> None:
    op = instruction.attributes["reduce_op"]
    if (
        op is not None
        and "reduce_res" in instruction.outputs
        and (instruction.attributes["reduce_cmd"] is reduce_cmd.idle)
    ):
        # Older kernels give reduce_op and reduce_res alone and mean a fresh reduction.
        instruction.attributes["reduce_cmd"] = reduce_cmd.reset_reduce
    if op is not None or "reduce_res" in instruction.outputs:
        accumulate(machine, instruction, values, op or "add")
    elif instruction.attributes["reduce_cmd"] is not reduce_cmd.idle:
        accumulate(machine, instruction, values, "add")
    machine.store(instruction.outputs["dst"], values)


@means("activation")
def _activation(machine: Machine, instruction: NkiInstruction) -> None:
    data = instruction.inputs["data"]
    values = machine.load(data)
    scale, bias = instruction.inputs["scale"], instruction.inputs.get("bias")
    with np.errstate(all="ignore"):
        if not (isinstance(scale, float) and scale == 1.0):
            values = values * column(machine, scale, data)
        if bias is not None:
            values = values + column(machine, bias, data)
    _finish(machine, instruction, activations.apply(instruction.attributes["op"], values))


@means("activate2")
def _activate2(machine: Machine, instruction: NkiInstruction) -> None:
    data = instruction.inputs["data"]
    values = machine.load(data)
    for step in ("0", "1"):
        op = instruction.attributes[f"op{step}"]
        operand = instruction.inputs.get(f"imm{step}")
        if op != "bypass" and operand is not None:
            other = column(machine, operand, data)
            reverse = instruction.attributes[f"reverse{step}"]
            values = alu.apply(op, values, other, reverse=reverse)
    slope = column(machine, instruction.inputs["relu_param"], data)
    _finish(
        machine,
        instruction,
        activations.apply(instruction.attributes["op"], np.asarray(values), slope=slope),
    )

"""Rows of the scalar engine's instructions."""

from __future__ import annotations

from neuron_chip.instructions import rules
from neuron_chip.instructions.row import InstructionRow, Operand

_DST = Operand(name="dst", role="out")
_DATA = Operand(name="data", role="in")
_REDUCE_RES = Operand(name="reduce_res", role="out", max_free=1, optional=True)


def _column(name: str) -> Operand:
    return Operand(name=name, role="column", max_free=1, optional=True)


ROWS = (
    InstructionRow(
        name="activation",
        summary="dst := f(data x scale + bias), with an optional sum per partition",
        engines=("scalar",),
        operands=(_DST, _DATA, _column("bias"), _column("scale"), _REDUCE_RES),
        cost=rules.with_read_out(rules.activation),
        cost_basis="data",
        constraints=("same_shape", "float_state"),
    ),
    InstructionRow(
        name="activation_reduce",
        summary="activation with the sum per partition read out",
        engines=("scalar",),
        operands=(_DST, _DATA, _column("bias"), _column("scale"), _REDUCE_RES),
        cost=rules.with_read_out(rules.activation, always=True),
        cost_basis="data",
        constraints=("same_shape", "float_state"),
    ),
    InstructionRow(
        name="activate2",
        summary="dst := f((data op0 imm0) op1 imm1), with an optional reduction",
        engines=("scalar",),
        operands=(
            *(_DST, _DATA, _column("imm0"), _column("imm1"), _column("relu_param"), _REDUCE_RES),
        ),
        cost=rules.with_read_out(rules.activation),
        cost_basis="data",
        min_generation=4,
        constraints=("same_shape", "float_state"),
        source="nki-v4",
    ),
)

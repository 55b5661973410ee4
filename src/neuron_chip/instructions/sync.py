"""Rows of sequencer instructions: registers and barriers."""

from __future__ import annotations

from neuron_chip.instructions import rules
from neuron_chip.instructions.row import HBM, REGISTER, SBUF, InstructionRow, Operand

_ANY_SEQUENCER = ("sync", "gpsimd", "scalar", "vector", "tensor")


def _register(name: str, role: str) -> Operand:
    return Operand(name=name, role=role, memories=(REGISTER,), dtypes=("int32", "uint32"))


ROWS = (
    InstructionRow(
        name="register_alloc",
        summary="a 32-bit register of the sequencer",
        engines=_ANY_SEQUENCER,
        operands=(),
        cost=rules.sequencer,
        cost_basis="",
        cost_known=False,
    ),
    InstructionRow(
        name="register_move",
        summary="register := constant or register",
        engines=_ANY_SEQUENCER,
        operands=(_register("dst", "out"), _register("src", "in")),
        cost=rules.sequencer,
        cost_basis="src",
        cost_known=False,
    ),
    InstructionRow(
        name="register_load",
        summary="register := one element",
        engines=_ANY_SEQUENCER,
        operands=(
            _register("dst", "out"),
            Operand(name="src", role="in", memories=(HBM, SBUF), max_partitions=1, max_free=1),
        ),
        cost=rules.sequencer,
        cost_basis="src",
        cost_known=False,
    ),
    InstructionRow(
        name="register_store",
        summary="one element := register",
        engines=_ANY_SEQUENCER,
        operands=(
            Operand(name="dst", role="out", memories=(HBM, SBUF), max_partitions=1, max_free=1),
            _register("src", "in"),
        ),
        cost=rules.sequencer,
        cost_basis="dst",
        cost_known=False,
    ),
    InstructionRow(
        name="core_barrier",
        summary="wait until both cores of a logical core have reached this point",
        engines=("gpsimd", "sync", "scalar", "vector", "tensor"),
        operands=(Operand(name="data", role="inout", memories=(HBM,), max_partitions=None),),
        cost=rules.sequencer,
        cost_basis="data",
        cost_known=False,
        min_generation=3,
        constraints=("lnc2_only",),
    ),
)

"""Rows of the tensor engine's instructions."""

from __future__ import annotations

from neuron_chip.instructions import rules
from neuron_chip.instructions.row import (
    MATMUL_DTYPES,
    PACKED,
    PSUM,
    SBUF,
    UNPACKED,
    InstructionRow,
    Operand,
)

_SCALES = ("float8_e8m0fnu", "uint8")

ROWS = (
    InstructionRow(
        name="nc_matmul",
        summary="dst (=|+=) stationary.T @ moving",
        engines=("tensor",),
        operands=(
            Operand(name="dst", role="inout", memories=(PSUM,), dtypes=("float32", "bfloat16")),
            Operand(
                name="stationary", role="in", memories=(SBUF,), dtypes=MATMUL_DTYPES, max_free=128
            ),
            # 512 up to generation 3; a PSUM of generation 4 takes 4,096 fp32 or 8,192 bf16.
            Operand(name="moving", role="in", memories=(SBUF,), dtypes=MATMUL_DTYPES),
        ),
        cost=rules.matmul,
        cost_basis="moving",
        constraints=(
            *("fp32_pairs_with_fp32", "e4m3_not_with_e4m3fn", "accumulate_into_psum"),
            "quadrant_aligned",
        ),
        source="isa-cost perf-guide matmul-tutorial",
    ),
    InstructionRow(
        name="nc_matmul_mx",
        summary="dst (=|+=) dequantised stationary.T @ dequantised moving, 32-element groups",
        engines=("tensor",),
        operands=(
            Operand(name="dst", role="inout", memories=(PSUM,), dtypes=("float32", "bfloat16")),
            Operand(
                name="stationary",
                role="in",
                memories=(SBUF,),
                dtypes=PACKED,
                max_free=128,
                partition_multiple=32,
                free_multiple=2,
            ),
            Operand(
                name="moving", role="in", memories=(SBUF,), dtypes=PACKED, partition_multiple=32
            ),
            Operand(name="stationary_scale", role="in", memories=(SBUF,), dtypes=_SCALES),
            Operand(name="moving_scale", role="in", memories=(SBUF,), dtypes=_SCALES),
        ),
        cost=rules.matmul,
        cost_basis="moving",
        min_generation=4,
        constraints=("accumulate_into_psum",),
        source="nki-v4",
    ),
    InstructionRow(
        name="nc_transpose",
        summary="dst[f, p] := data[p, f]",
        engines=("tensor", "vector"),
        operands=(
            Operand(name="dst", role="out", dtypes=UNPACKED),
            Operand(name="data", role="in", max_free=128),
        ),
        cost=rules.tensor_transpose,
        cost_basis="data",
        constraints=("same_dtype", "quadrant_aligned"),
        source="isa-cost perf-guide",
    ),
)

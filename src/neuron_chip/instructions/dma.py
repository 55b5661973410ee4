"""Rows of DMA instructions; `cost.dma` prices them from bytes and descriptors."""

from __future__ import annotations

from neuron_chip.instructions.row import ANY_DTYPE, HBM, SBUF, InstructionRow, Operand

_EITHER = (HBM, SBUF)
_TWO_BYTES = ("bfloat16", "float16", "int16", "uint16")

ROWS = (
    InstructionRow(
        name="dma_copy",
        summary="dst := src between HBM and SBUF, with gather or scatter by an index",
        engines=("dma",),
        operands=(
            Operand(
                name="dst", role="out", memories=_EITHER, dtypes=ANY_DTYPE, max_partitions=None
            ),
            Operand(name="src", role="in", memories=_EITHER, dtypes=ANY_DTYPE, max_partitions=None),
        ),
        cost=None,
        cost_basis="src",
        constraints=("element_counts_equal", "hardware_dge_same_dtype"),
        source="dma-guide",
    ),
    InstructionRow(
        name="dma_transpose",
        summary="dst := src with its axes permuted",
        engines=("dma",),
        operands=(
            Operand(name="dst", role="out", memories=(SBUF,), dtypes=_TWO_BYTES),
            Operand(
                name="src", role="in", memories=_EITHER, dtypes=_TWO_BYTES, max_partitions=None
            ),
        ),
        cost=None,
        cost_basis="src",
        constraints=("same_dtype",),
        source="dma-guide",
    ),
    InstructionRow(
        name="dma_compute",
        summary="dst := sum of sources, accumulated in fp32",
        engines=("dma",),
        operands=(
            Operand(name="dst", role="inout", memories=_EITHER, max_partitions=None),
            Operand(name="srcs", role="in", memories=_EITHER, max_partitions=None),
        ),
        cost=None,
        cost_basis="dst",
        constraints=("element_counts_equal", "distinct_indices"),
        source="dma-guide",
    ),
    InstructionRow(
        name="sendrecv",
        summary="exchange tiles between the two cores of a logical core",
        engines=("dma", "gpsimd"),
        operands=(
            Operand(name="src", role="in", memories=(SBUF,), dtypes=ANY_DTYPE),
            Operand(name="dst", role="out", memories=(SBUF,), dtypes=ANY_DTYPE),
        ),
        cost=None,
        cost_basis="src",
        min_generation=3,
        constraints=("same_shape", "same_dtype", "lnc2_only"),
        source="nki-v3",
    ),
)

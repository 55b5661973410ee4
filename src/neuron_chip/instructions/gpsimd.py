"""Rows of instructions that run on the gpsimd engine by default."""

from __future__ import annotations

from neuron_chip.instructions import rules
from neuron_chip.instructions.row import SBUF, InstructionRow, Operand


def _tile(name: str, role: str, **limits: object) -> Operand:
    return Operand(name=name, role=role, memories=(SBUF,), **limits)  # type: ignore[arg-type]


ROWS = (
    InstructionRow(
        name="iota",
        summary="an affine sequence along partitions and free axes",
        engines=("gpsimd",),
        operands=(_tile("dst", "out"),),
        cost=rules.gpsimd_per_element(1.0),
        cost_basis="dst",
    ),
    InstructionRow(
        name="affine_select",
        summary="keep elements whose affine position passes a comparison",
        engines=("gpsimd",),
        operands=(_tile("dst", "out"), _tile("on_true_tile", "in")),
        cost=rules.gpsimd_per_element(1.0),
        cost_basis="on_true_tile",
        constraints=("same_shape",),
    ),
    InstructionRow(
        name="local_gather",
        summary="columns picked by an index, per core of 16 partitions",
        engines=("gpsimd",),
        operands=(
            _tile("dst", "out"),
            _tile("src_buffer", "in", partition_multiple=16),
            _tile("index", "index", dtypes=("uint16",), partition_multiple=16),
        ),
        cost=rules.local_gather,
        cost_basis="src_buffer",
        constraints=("same_dtype",),
    ),
    InstructionRow(
        name="nc_n_gather",
        summary="elements of each partition picked by an index",
        engines=("gpsimd",),
        operands=(
            _tile("dst", "out"),
            _tile("data", "in"),
            _tile("indices", "index", dtypes=("uint32",)),
        ),
        cost=rules.gpsimd_per_element(1.0),
        cost_basis="dst",
        cost_known=False,
        constraints=("same_dtype",),
    ),
    InstructionRow(
        name="tensor_partition_reduce",
        summary="reduction over partitions into one row",
        engines=("gpsimd",),
        operands=(_tile("dst", "out", max_partitions=1), _tile("data", "in")),
        cost=rules.gpsimd_per_element(8.0),  # eight steps halve 128 partitions to one
        cost_basis="data",
        cost_known=False,
    ),
    InstructionRow(
        name="rand_set_state",
        summary="load the random generator's state",
        engines=("gpsimd", "vector"),
        operands=(_tile("src_seeds", "in", dtypes=("uint32",), max_free=24),),
        cost=rules.per_element(1.0),
        cost_basis="src_seeds",
        cost_known=False,
        min_generation=3,
        min_generation_by_engine={"vector": 4},
    ),
    InstructionRow(
        name="rand_get_state",
        summary="read the random generator's state",
        engines=("gpsimd", "vector"),
        operands=(Operand(name="dst", role="out", dtypes=("uint32",), max_free=24),),
        cost=rules.per_element(1.0),
        cost_basis="dst",
        cost_known=False,
        min_generation=3,
        min_generation_by_engine={"vector": 4},
        constraints=("gpsimd_no_psum",),
    ),
    InstructionRow(
        name="sequence_bounds",
        summary="start and end of each element's segment",
        engines=("gpsimd",),
        operands=(
            _tile("dst", "out", dtypes=("float32", "int32"), max_partitions=1),
            _tile("segment_ids", "in", dtypes=("float32", "int32"), max_partitions=1),
        ),
        cost=rules.gpsimd_per_element(2.0),
        cost_basis="segment_ids",
        cost_known=False,
    ),
    InstructionRow(
        name="nonzero_with_count",
        summary="positions of nonzero elements and their number",
        engines=("gpsimd",),
        operands=(
            _tile("dst", "out", dtypes=("int32",)),
            _tile("src", "in", dtypes=("float32", "int32")),
        ),
        cost=rules.gpsimd_per_element(1.0),
        cost_basis="src",
        cost_known=False,
        min_generation=3,
    ),
    InstructionRow(
        name="topk",
        summary="largest values and their positions over 16 partitions",
        engines=("gpsimd",),
        operands=(
            _tile("val_dst", "out", dtypes=("bfloat16",)),
            _tile("idx_dst", "out", dtypes=("uint32",)),
            _tile("src", "in", dtypes=("bfloat16",), partition_multiple=16),
        ),
        cost=rules.top_k,
        cost_basis="src",
        source="nki-v3",
    ),
)

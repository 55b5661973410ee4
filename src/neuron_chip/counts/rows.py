"""Work of operations along rows: reductions, softmax, norms, top-k."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from neuron_chip.counts.elementwise import passes
from neuron_chip.dtypes import dtype as dtype_row
from neuron_chip.lookup import find
from neuron_chip.work import Activity, Lane, Work

if TYPE_CHECKING:
    from neuron_chip.parts import Chip

# 16-bit rows are widened to fp32 first: a vector copy in its 2x mode.
WIDEN_PASSES = 0.5


@dataclass(frozen=True, kw_only=True)
class RowOperation:
    """Passes of one operation over the elements of a row."""

    name: str
    vector_passes: float
    vector_passes_16bit_saved: float = 0.0
    """Passes that the 16-bit mode saves in the last, already narrow, step."""
    scalar_passes: float = 0.0
    writes_rows: bool = True
    """Whether the result has the shape of the input."""
    meaning: str


ROW_OPERATIONS: tuple[RowOperation, ...] = (
    RowOperation(name="sum", vector_passes=1, writes_rows=False, meaning="tensor_reduce"),
    RowOperation(
        name="max_with_index",
        # Reduce 1, compare with the maximum 2, select positions 2, reduce them 1.
        vector_passes=6,
        vector_passes_16bit_saved=1,
        writes_rows=False,
        meaning="maximum and its first position",
    ),
    RowOperation(
        name="softmax",
        vector_passes=2,
        scalar_passes=1,
        meaning="row maximum, exp with sum on ScalarE, scale",
    ),
    RowOperation(
        name="rms_norm",
        vector_passes=3,
        vector_passes_16bit_saved=1,
        scalar_passes=1,
        meaning="square with sum on ScalarE, scale, product with the weight",
    ),
    RowOperation(
        name="layer_norm",
        vector_passes=6,
        vector_passes_16bit_saved=2,
        meaning="bn_stats, shift and scale, product with the weight, sum with the bias",
    ),
)

_BY_NAME = {row.name: row for row in ROW_OPERATIONS}


def row_operation(
    name: str, rows: int, length: int, *, chip: Chip, dtype: str = "bfloat16"
) -> Work:
    """One operation of `ROW_OPERATIONS` over `rows` rows of `length` elements in HBM."""
    row, element = find(_BY_NAME, name, kind="row operation"), dtype_row(dtype)
    elements = rows * length
    vector = row.vector_passes
    if element.is_16bit_float:
        vector += WIDEN_PASSES
        if chip.vector.max_fast_elements_per_lane_cycle > 1:
            vector -= row.vector_passes_16bit_saved
    written = elements if row.writes_rows else rows
    return Work(
        lanes=passes(
            elements,
            chip=chip,
            vector=vector,
            scalar=row.scalar_passes,
            tile_elements=max(1, min(length, 4096)),
            dependent=True,
        ),
        flops={"vector": (row.vector_passes + row.scalar_passes) * elements},
        hbm_read_bytes=elements * element.bytes,
        hbm_write_bytes=written * element.bytes,
    )


def top_k(
    rows: int,
    length: int,
    k: int,
    *,
    chip: Chip,
    dtype: str = "bfloat16",
    lnc: int | None = None,
) -> Work:
    """The k largest of each row: rounds of eight by max8, find_index8 and match_replace8.

    A row sits on one partition, so few rows leave most lanes, or a whole core, without work.
    """
    element = dtype_row(dtype)
    rounds = math.ceil(k / 8)
    per_element = 2.0 * rounds + (rounds - 1)
    cores = chip.check_lnc(lnc)
    waves = cores * math.ceil(rows / (cores * chip.sbuf.partitions))
    instructions = waves * per_element * math.ceil(length / 16384)
    steps = waves * per_element * length
    return Work(
        lanes={Lane("vector", "1x"): Activity(instructions, steps, instructions)},
        flops={"vector": float(rounds * rows * length)},
        hbm_read_bytes=rows * length * element.bytes,
        hbm_write_bytes=rows * k * (element.bytes + 4),
    )

"""Work of element-wise functions: passes per engine, one row per function."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from neuron_chip.dtypes import dtype as dtype_row
from neuron_chip.lookup import find
from neuron_chip.work import Activity, Lane, Work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuron_chip.parts import Chip

# Elements per lane that one instruction takes: 8 KiB of fp32 in a lane.
TILE_ELEMENTS = 2048


@dataclass(frozen=True, kw_only=True)
class Function:
    """Engine passes over an element; one pass is one cycle per lane without performance modes."""

    name: str
    vector_passes_32bit: float
    vector_passes_16bit: float
    scalar_passes: float = 0.0
    scalar_passes_32bit: float | None = None
    """None: as many as in 16 bits."""
    flops: float = 1.0
    meaning: str


def _activation(*names: str) -> tuple[Function, ...]:
    return tuple(
        Function(
            name=name,
            vector_passes_32bit=0,
            vector_passes_16bit=0,
            scalar_passes=1,
            meaning="one table lookup",
        )
        for name in names
    )


def _binary(*names: str) -> tuple[Function, ...]:
    return tuple(
        Function(
            name=name,
            # A vector instruction with two SBUF operands takes two cycles per element; the fast
            # mode for 16-bit types makes it one.
            vector_passes_32bit=2,
            vector_passes_16bit=1,
            meaning="tensor_tensor",
        )
        for name in names
    )


def _unary_vector(*names: str) -> tuple[Function, ...]:
    return tuple(
        Function(
            name=name,
            vector_passes_32bit=0.5,
            vector_passes_16bit=0.25,
            meaning="tensor_scalar in its performance mode",
        )
        for name in names
    )


FUNCTIONS: tuple[Function, ...] = (
    *_activation(
        *("exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "silu", "relu", "square", "softplus"),
        *("sign", "abs", "gelu_table"),
    ),
    *_binary("add", "sub", "mul", "maximum", "minimum", "compare", "logical"),
    *_unary_vector("add_scalar", "mul_scalar", "clamp", "neg", "cast"),
    Function(
        name="copy",
        vector_passes_32bit=0,
        vector_passes_16bit=0,
        flops=0,
        meaning="DMA only",
    ),
    Function(
        name="where",
        vector_passes_32bit=4,
        vector_passes_16bit=4,
        meaning="a copy and a predicated copy",
    ),
    Function(
        name="div",
        vector_passes_32bit=8,
        vector_passes_16bit=1,
        scalar_passes=1,
        scalar_passes_32bit=0,
        meaning="exact reciprocal in fp32 (8 cycles), table reciprocal and product in 16 bits",
    ),
    Function(
        name="erf",
        # Rational approximation of six and four Horner steps: (p + c) * x^2 is one instruction of
        # 2, a first step 0.5, clamp and last sum 0.5 each, two products 2 each.
        vector_passes_32bit=22,
        vector_passes_16bit=22,
        scalar_passes=2,
        flops=25,
        meaning="rational approximation in fp32, square and reciprocal on ScalarE",
    ),
    Function(
        name="gelu_erf",
        vector_passes_32bit=24,
        vector_passes_16bit=24,
        scalar_passes=2,
        flops=28,
        meaning="erf, and x (1 + erf) / 2",
    ),
    Function(
        name="gelu_tanh",
        # c x^2 + 1 0.5, times x 2, tanh on ScalarE, (t + 1) x 2, half of it 0.5.
        vector_passes_32bit=5,
        vector_passes_16bit=5,
        scalar_passes=2,
        flops=8,
        meaning="polynomial on VectorE, square and tanh on ScalarE",
    ),
    Function(
        name="sin",
        # Turns 0.5, floor by two casts, a comparison and a correction 1 + 1 + 2 + 2, three
        # subtractions of parts of 2 pi at 2; 16-bit types are widened and narrowed.
        vector_passes_32bit=12.5,
        vector_passes_16bit=13.5,
        scalar_passes=1,
        flops=10,
        meaning="range reduction, then a table lookup",
    ),
    Function(
        name="adamw",
        # VectorE: two moments 2 + 2, epsilon 1, update 2, step 2. ScalarE: both decays, square,
        # root, reciprocal, weight decay.
        vector_passes_32bit=9,
        vector_passes_16bit=9,
        scalar_passes=6,
        flops=14,
        meaning="one optimizer step in fp32",
    ),
)

_BY_NAME: dict[str, Function] = {row.name: row for row in FUNCTIONS} | {
    "cos": next(row for row in FUNCTIONS if row.name == "sin")
}


def function(name: str) -> Function:
    """The row of an element-wise function."""
    return find(_BY_NAME, name, kind="element-wise function")


def passes(
    elements: float,
    *,
    chip: Chip,
    vector: float = 0.0,
    scalar: float = 0.0,
    gpsimd: float = 0.0,
    tile_elements: int = TILE_ELEMENTS,
    dependent: bool = True,
) -> dict[Lane, Activity]:
    """Engine time of passes over `elements`, in instructions of `tile_elements` per lane."""
    steps = elements / chip.sbuf.partitions
    instructions = math.ceil(steps / tile_elements) if elements else 0
    lanes: dict[Lane, Activity] = {}
    for engine, count in (("vector", vector), ("scalar", scalar), ("gpsimd", gpsimd)):
        if count:
            issued = instructions * max(1.0, math.ceil(count / 2))
            lanes[Lane(engine, "1x")] = Activity(
                issued, count * steps, issued if dependent else 0.0
            )
    return lanes


def elementwise(
    name: str,
    elements: int,
    *,
    chip: Chip,
    inputs: Sequence[str] = ("bfloat16",),
    output: str = "bfloat16",
) -> Work:
    """A function over `elements`, with inputs and output in HBM."""
    row = function(name)
    narrow = all(dtype_row(each).is_16bit_float for each in (*inputs, output))
    vector, scalar = row.vector_passes_16bit, row.scalar_passes
    if not narrow or chip.vector.max_fast_elements_per_lane_cycle == 1:
        vector = row.vector_passes_32bit
        if row.scalar_passes_32bit is not None:
            scalar = row.scalar_passes_32bit
    return Work(
        lanes=passes(elements, chip=chip, vector=vector, scalar=scalar),
        flops={"vector": row.flops * elements},
        hbm_read_bytes=elements * sum(dtype_row(each).bytes for each in inputs),
        hbm_write_bytes=elements * dtype_row(output).bytes,
    )


def default_rule(read_bytes: float, written_bytes: float, *, chip: Chip) -> Work:
    """Work of an operation that nobody has counted: its bytes, and one fp32 pass over them."""
    elements = max(read_bytes, written_bytes) / 4
    return Work(
        lanes=passes(elements, chip=chip, vector=2.0),
        hbm_read_bytes=read_bytes,
        hbm_write_bytes=written_bytes,
        default_rule=True,
    )

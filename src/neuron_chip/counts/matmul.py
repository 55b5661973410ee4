"""Work of matrix products: tiles, PSUM evictions and HBM traffic with SBUF reuse."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from neuron_chip.cost.tensor import matmul_passes, tensor_cycles
from neuron_chip.dtypes import dtype as dtype_row
from neuron_chip.work import Activity, Lane, Work

if TYPE_CHECKING:
    from neuron_chip.parts import Chip

# Part of SBUF that a resident operand block may fill; the rest holds what streams through.
RESIDENT_SHARE = 0.5


def matmul(
    m: int,
    k: int,
    n: int,
    *,
    chip: Chip,
    dtype: str = "bfloat16",
    out_dtype: str | None = None,
    batch: int = 1,
    lnc: int | None = None,
    weight_dtype: str | None = None,
    read_a: bool = True,
    read_b: bool = True,
    write_out: bool = True,
) -> Work:
    """`batch` products of [m, k] by [k, n].

    Args:
        weight_dtype: how the [k, n] operand is stored, when it is narrower than `dtype`.
        read_a, read_b, write_out: False for an operand that stays on the chip.
    """
    row, out = dtype_row(dtype), dtype_row(out_dtype or dtype)
    matmul_class = row.matmul_class or "fp32"
    instructions, columns = _tiles(m, k, n, matmul_class, chip)
    a_bytes = m * k * row.bytes_per_value if read_a else 0.0
    b_bytes = k * n * dtype_row(weight_dtype or dtype).bytes_per_value if read_b else 0.0
    a_times, b_times = _reads(m, n, a_bytes, b_bytes, chip=chip, cores=chip.check_lnc(lnc))
    out_tiles = math.ceil(m / chip.tensor.columns) * math.ceil(n / chip.tensor.max_moving_free)
    return batch * Work(
        lanes={
            Lane("tensor", matmul_class): Activity(instructions, columns),
            # PSUM holds fp32: the copy out runs at one element per lane and cycle.
            Lane("vector", "1x"): Activity(out_tiles, m * n / chip.psum.partitions),
        },
        flops={matmul_class: 2.0 * m * k * n},
        hbm_read_bytes=a_times * a_bytes + b_times * b_bytes,
        hbm_write_bytes=m * n * out.bytes_per_value if write_out else 0.0,
        tensor_bursts=1.0 / batch,
    )


def _tiles(m: int, k: int, n: int, matmul_class: str, chip: Chip) -> tuple[float, float]:
    """Instructions and streamed columns in the better of the two orientations."""
    tensor = chip.tensor
    depth = tensor.rows
    if matmul_class in ("fp8", "mx"):
        depth = round(tensor.rows / matmul_passes(matmul_class, chip))
    k_tiles = math.ceil(k / depth)
    best: tuple[float, float, float] | None = None
    for stationary, moving in ((m, n), (n, m)):
        s_tiles = math.ceil(stationary / tensor.columns)
        instructions = float(k_tiles * s_tiles * math.ceil(moving / tensor.max_moving_free))
        columns = float(k_tiles * depth // tensor.rows * s_tiles * moving)
        cycles = tensor_cycles(matmul_class, chip, columns=columns, instructions=instructions)
        if best is None or cycles < best[0]:
            best = (cycles, instructions, columns)
    assert best is not None
    return best[1], best[2]


def _reads(
    m: int, n: int, a_bytes: float, b_bytes: float, *, chip: Chip, cores: int
) -> tuple[float, float]:
    """How often each operand is read from HBM, in the cheapest of the usual blockings.

    The cores split m or n; what a core does not own it reads in full. It keeps a block of one
    operand, or a square block of fp32 results, and streams the rest past it.
    """
    room = RESIDENT_SHARE * chip.sbuf.total_bytes
    side = max(chip.tensor.columns, math.isqrt(round(room / 4)))
    m_cores, n_cores = min(cores, m), min(cores, n)
    choices = (
        (1.0, m_cores * _blocks(a_bytes / m_cores, room)),
        (_blocks(b_bytes, room), float(m_cores)),
        (n_cores * _blocks(b_bytes / n_cores, room), 1.0),
        (float(n_cores), _blocks(a_bytes, room)),
        (_blocks(n, side), m_cores * _blocks(m / m_cores, side)),
        (n_cores * _blocks(n / n_cores, side), _blocks(m, side)),
    )
    return min(choices, key=lambda times: times[0] * a_bytes + times[1] * b_bytes)


def _blocks(size: float, room: float) -> float:
    return float(max(1, math.ceil(size / room)))

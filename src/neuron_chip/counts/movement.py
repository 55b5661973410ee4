"""Work of data movement: copies, strided views, gathers, scatters, transposes, host copies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from neuron_chip.dtypes import dtype as dtype_row
from neuron_chip.work import Activity, Lane, Work

if TYPE_CHECKING:
    from neuron_chip.parts import Chip


def copy(num_bytes: float, *, contiguous_bytes: float | None = None) -> Work:
    """A device copy; `contiguous_bytes` is the shortest piece on either side."""
    pieces = 0.0 if contiguous_bytes is None else 2 * num_bytes / contiguous_bytes
    return Work(hbm_read_bytes=num_bytes, hbm_write_bytes=num_bytes, dma_descriptors=pieces)


def gather_rows(rows: int, row_bytes: float, *, index_bytes: float = 4.0) -> Work:
    """Rows picked by an index: embedding, index_select. One descriptor each way per row."""
    return Work(
        hbm_read_bytes=rows * (row_bytes + index_bytes),
        hbm_write_bytes=rows * row_bytes,
        dma_descriptors=2.0 * rows,
        software_descriptors=float(rows),
    )


def scatter_add_rows(rows: int, row_bytes: float, *, index_bytes: float = 4.0) -> Work:
    """Rows added at an index: read source and destination, write the destination."""
    return Work(
        hbm_read_bytes=rows * (2 * row_bytes + index_bytes),
        hbm_write_bytes=rows * row_bytes,
        dma_descriptors=3.0 * rows,
        software_descriptors=2.0 * rows,
    )


def gather_elements(elements: int, element_bytes: float, *, index_bytes: float = 4.0) -> Work:
    """Single elements picked by an index: a descriptor for each."""
    return gather_rows(elements, element_bytes, index_bytes=index_bytes)


def dma_transpose(num_bytes: float) -> Work:
    """A transpose done by the DMA engines between two places in HBM."""
    return Work(hbm_read_bytes=num_bytes, hbm_write_bytes=num_bytes, dma_transpose_bytes=num_bytes)


def transpose(rows: int, columns: int, *, chip: Chip, dtype: str = "bfloat16") -> Work:
    """A transpose on the tensor engine: tiles through PSUM and back."""
    element = dtype_row(dtype)
    side = chip.tensor.columns
    tiles = float(math.ceil(rows / side) * math.ceil(columns / side))
    num_bytes = rows * columns * element.bytes
    # Four-byte elements pass at half the speed of two-byte ones, not a quarter.
    passes = 2 if element.bits == 32 else 1
    rate = "2x" if element.is_16bit_float else "1x"
    return Work(
        lanes={
            Lane("tensor", "bf16"): Activity(tiles, passes * tiles * side),
            Lane("vector", rate): Activity(tiles, tiles * side),
        },
        hbm_read_bytes=num_bytes,
        hbm_write_bytes=num_bytes,
    )


def host_copy(num_bytes: float) -> Work:
    """Bytes between the host and the chip."""
    return Work(host_bytes=num_bytes)


def launch(count: float = 1.0) -> Work:
    """Starts of an operation or a graph; the software stack prices them."""
    return Work(launches=count)

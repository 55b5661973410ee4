"""Work of convolutions: a product over kernel positions and channels, or lanes when depthwise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from neuron_chip.counts.elementwise import passes
from neuron_chip.counts.matmul import matmul
from neuron_chip.dtypes import dtype as dtype_row
from neuron_chip.work import Work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuron_chip.parts import Chip


def convolution(
    *,
    chip: Chip,
    batch: int,
    in_channels: int,
    out_channels: int,
    input_size: Sequence[int],
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    groups: int = 1,
    dtype: str = "bfloat16",
    lnc: int | None = None,
) -> Work:
    """A convolution in any number of spatial dimensions, forward.

    Shifted windows are read from SBUF, so the input is read from HBM once.
    """
    element = dtype_row(dtype)
    positions = batch * math.prod(output_size)
    taps = math.prod(kernel_size)
    traffic = Work(
        hbm_read_bytes=element.bytes
        * (
            batch * in_channels * math.prod(input_size)
            + out_channels * in_channels // groups * taps
        ),
        hbm_write_bytes=element.bytes * positions * out_channels,
    )
    if groups == in_channels and groups > 1:
        # Depthwise: a multiply-add per tap on the vector engine, at two cycles per element.
        lanes = passes(positions * out_channels, chip=chip, vector=2.0 * taps)
        return traffic + Work(lanes=lanes, flops={"vector": 2.0 * positions * out_channels * taps})
    product = matmul(
        positions,
        in_channels // groups * taps,
        out_channels // groups,
        chip=chip,
        dtype=dtype,
        batch=groups,
        lnc=lnc,
        read_a=False,
        read_b=False,
        write_out=False,
    )
    return traffic + product

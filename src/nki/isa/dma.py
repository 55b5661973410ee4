"""Data movement by the DMA engines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nki.errors import NkiValidationError
from nki.isa.operands import emit, tile
from nki.program.enums import Engine, dge_mode, engine, oob_mode
from nki.program.ir import NkiInstruction
from nki.program.operators import operator_name
from nki.program.tensor import NkiTensor


def dma_copy(
    dst: NkiTensor,
    src: NkiTensor,
    priority: int | None = None,
    oob_mode: oob_mode = oob_mode.error,
    dge_mode: dge_mode = dge_mode.unknown,
    engine: engine = engine.unknown,
    name: str | None = None,
) -> NkiInstruction:
    """dst := src between HBM and SBUF, converting through fp32 when the dtypes differ.

    An indirect src gathers, an indirect dst scatters. Indices out of range trap, or drop that
    row with oob_mode.skip.
    """
    return emit(
        "dma_copy",
        Engine.dma,
        {"dst": tile(dst, "dst")},
        {"src": tile(src, "src")},
        {
            "priority": priority,
            "oob_mode": oob_mode,
            "dge_mode": dge_mode,
            "issuing_engine": engine,
        },
        name=name,
    )


_TRANSPOSE_AXES = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}


def dma_transpose(
    dst: NkiTensor,
    src: NkiTensor,
    axes: Sequence[int] | None = None,
    priority: int | None = None,
    dge_mode: dge_mode = dge_mode.unknown,
    oob_mode: oob_mode = oob_mode.error,
    name: str | None = None,
) -> NkiInstruction:
    """dst := src with its first and last dimension swapped."""
    source = tile(src, "src")
    order = tuple(axes) if axes is not None else _TRANSPOSE_AXES.get(source.ndim, ())
    return emit(
        "dma_transpose",
        Engine.dma,
        {"dst": tile(dst, "dst")},
        {"src": source},
        {"axes": order, "priority": priority, "dge_mode": dge_mode, "oob_mode": oob_mode},
        name=name,
    )


def dma_compute(
    dst: NkiTensor,
    srcs: Sequence[NkiTensor],
    reduce_op: Any,
    scales: Sequence[float] | None = None,
    unique_indices: bool = True,
    oob_mode: oob_mode = oob_mode.error,
    name: str | None = None,
) -> NkiInstruction:
    """dst := sum of srcs in fp32; with an indirect operand, a read-modify-write by row."""
    factors = [1.0] * len(srcs) if scales is None else [float(scale) for scale in scales]
    if len(factors) != len(srcs) or any(factor != 1.0 for factor in factors):
        raise NkiValidationError(
            f"nisa.dma_compute: scales {scales} for {len(srcs)} sources; only 1.0 for each is "
            "possible. Multiply with nisa.tensor_scalar first."
        )
    return emit(
        "dma_compute",
        Engine.dma,
        {"dst": tile(dst, "dst")},
        {"srcs": [tile(src, "srcs") for src in srcs]},
        {
            "reduce_op": operator_name(reduce_op),
            "unique_indices": unique_indices,
            "oob_mode": oob_mode,
        },
        name=name,
    )

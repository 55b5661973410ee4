"""The tensor engine: matrix products and transposes."""

from __future__ import annotations

from collections.abc import Sequence

from nki.isa.legacy import takes_dtype
from nki.isa.operands import choose, emit, tile
from nki.program.enums import Engine, engine, matmul_perf_mode
from nki.program.ir import NkiInstruction
from nki.program.storage import MemoryRegion
from nki.program.tensor import NkiTensor


def nc_matmul(
    dst: NkiTensor,
    stationary: NkiTensor,
    moving: NkiTensor,
    is_stationary_onezero: bool = False,
    is_moving_onezero: bool = False,
    is_transpose: bool = False,
    accumulate: bool | None = None,
    tile_position: Sequence[int] = (),
    tile_size: Sequence[int] = (),
    perf_mode: matmul_perf_mode = matmul_perf_mode.none,
    name: str | None = None,
) -> NkiInstruction:
    """dst (PSUM) := or += stationary.T @ moving, contracted over partitions, summed in fp32.

    accumulate: False overwrites, True adds, None overwrites on the first product into a place
    and adds from then on.
    """
    return emit(
        "nc_matmul",
        Engine.tensor,
        {"dst": tile(dst, "dst")},
        {"stationary": tile(stationary, "stationary"), "moving": tile(moving, "moving")},
        {
            "is_stationary_onezero": is_stationary_onezero,
            "is_moving_onezero": is_moving_onezero,
            "is_transpose": is_transpose,
            "accumulate": accumulate,
            "tile_position": tuple(tile_position or ()),
            "tile_size": tuple(tile_size or ()),
            "perf_mode": _perf_mode(perf_mode),
        },
        name=name,
    )


def _perf_mode(value: matmul_perf_mode | str | None) -> matmul_perf_mode:
    return matmul_perf_mode.none if value is None else matmul_perf_mode(value)


def nc_matmul_mx(
    dst: NkiTensor,
    stationary: NkiTensor,
    moving: NkiTensor,
    stationary_scale: NkiTensor,
    moving_scale: NkiTensor,
    tile_position: Sequence[int] | None = None,
    tile_size: Sequence[int] | None = None,
    accumulate: bool | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """Matrix product of MXFP8/MXFP4 operands, dequantised by one scale for each 32 elements."""
    return emit(
        "nc_matmul_mx",
        Engine.tensor,
        {"dst": tile(dst, "dst")},
        {
            "stationary": tile(stationary, "stationary"),
            "moving": tile(moving, "moving"),
            "stationary_scale": tile(stationary_scale, "stationary_scale"),
            "moving_scale": tile(moving_scale, "moving_scale"),
        },
        {
            "tile_position": tuple(tile_position or ()),
            "tile_size": tuple(tile_size or ()),
            "accumulate": accumulate,
        },
        name=name,
    )


@takes_dtype
def nc_transpose(
    dst: NkiTensor,
    data: NkiTensor,
    engine: engine = engine.unknown,
    name: str | None = None,
) -> NkiInstruction:
    """dst[f, p] := data[p, f]; the free dimensions count as one."""
    source, target = tile(data, "data"), tile(dst, "dst")
    array = source.buffer is MemoryRegion.sbuf and target.buffer is MemoryRegion.psum
    return emit(
        "nc_transpose",
        choose(engine, Engine.tensor if array else Engine.vector),
        {"dst": target},
        {"data": source},
        name=name,
    )

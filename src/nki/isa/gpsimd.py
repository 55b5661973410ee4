"""GpSimd: index patterns, gathers, and reductions over partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nki.isa.legacy import takes_dtype
from nki.isa.operands import emit, tile
from nki.program import operators
from nki.program.enums import Engine as _Engine
from nki.program.ir import NkiInstruction
from nki.program.tensor import NkiTensor


def _pattern(pattern: Sequence[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((int(step), int(count)) for step, count in pattern)


@takes_dtype
def iota(
    dst: NkiTensor,
    pattern: Sequence[Sequence[int]],
    offset: int = 0,
    channel_multiplier: int = 0,
    name: str | None = None,
) -> NkiInstruction:
    """dst[p, i, j, ...] := offset + p * channel_multiplier + the pattern's steps."""
    return emit(
        "iota",
        _Engine.gpsimd,
        {"dst": tile(dst, "dst")},
        {"offset": offset},
        {"pattern": _pattern(pattern), "channel_multiplier": int(channel_multiplier)},
        name=name,
    )


@takes_dtype
def affine_select(
    dst: NkiTensor,
    pattern: Sequence[Sequence[int]],
    channel_multiplier: int,
    on_true_tile: NkiTensor,
    on_false_value: float,
    cmp_op: Any = "equal",
    offset: int = 0,
    name: str | None = None,
) -> NkiInstruction:
    """Keep on_true_tile where (affine value cmp_op 0), else write on_false_value."""
    return emit(
        "affine_select",
        _Engine.gpsimd,
        {"dst": tile(dst, "dst")},
        {"on_true_tile": tile(on_true_tile, "on_true_tile"), "offset": offset},
        {
            "pattern": _pattern(pattern),
            "channel_multiplier": int(channel_multiplier),
            "cmp_op": operators.alu(cmp_op, role="cmp_op").name,
            "on_false_value": float(on_false_value),
        },
        name=name,
    )


def tensor_partition_reduce(
    dst: NkiTensor, op: Any, data: NkiTensor, name: str | None = None
) -> NkiInstruction:
    """dst[0] := data reduced over its partitions."""
    return emit(
        "tensor_partition_reduce",
        _Engine.gpsimd,
        {"dst": tile(dst, "dst")},
        {"data": tile(data, "data")},
        {"op": operators.reduction(op).name},
        name=name,
    )


def local_gather(
    dst: NkiTensor,
    src_buffer: NkiTensor,
    index: NkiTensor,
    num_elem_per_idx: int = 1,
    num_valid_indices: int | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """Gather columns; each 16 partitions share the indices stored across them."""
    return emit(
        "local_gather",
        _Engine.gpsimd,
        {"dst": tile(dst, "dst")},
        {"src_buffer": tile(src_buffer, "src_buffer"), "index": tile(index, "index")},
        {"num_elem_per_idx": int(num_elem_per_idx), "num_valid_indices": num_valid_indices},
        name=name,
    )


def nc_n_gather(
    dst: NkiTensor, data: NkiTensor, indices: NkiTensor, name: str | None = None
) -> NkiInstruction:
    """dst[p, i] := data[p, indices[p, i]], the free dimensions counting as one."""
    return emit(
        "nc_n_gather",
        _Engine.gpsimd,
        {"dst": tile(dst, "dst")},
        {"data": tile(data, "data"), "indices": tile(indices, "indices")},
        name=name,
    )


def nonzero_with_count(
    dst: NkiTensor,
    src: NkiTensor,
    index_offset: int = 0,
    padding_val: int = -1,
    name: str | None = None,
) -> NkiInstruction:
    """Indices of non-zero elements, padding, and their number, in partition 0 of each 16."""
    return emit(
        "nonzero_with_count",
        _Engine.gpsimd,
        {"dst": tile(dst, "dst")},
        {"src": tile(src, "src"), "index_offset": index_offset},
        {"padding_val": int(padding_val)},
        name=name,
    )


def topk(
    val_dst: NkiTensor,
    idx_dst: NkiTensor,
    src: NkiTensor,
    n: int,
    name: str | None = None,
) -> NkiInstruction:
    """The K largest of n values that snake over 16 partitions, ascending, with their indices."""
    return emit(
        "topk",
        _Engine.gpsimd,
        {"val_dst": tile(val_dst, "val_dst"), "idx_dst": tile(idx_dst, "idx_dst")},
        {"src": tile(src, "src")},
        {"n": int(n)},
        name=name,
    )


def sequence_bounds(
    dst: NkiTensor, segment_ids: NkiTensor, name: str | None = None
) -> NkiInstruction:
    """dst[0, :, i] := start and end of the segment that element i belongs to."""
    return emit(
        "sequence_bounds",
        _Engine.gpsimd,
        {"dst": tile(dst, "dst")},
        {"segment_ids": tile(segment_ids, "segment_ids")},
        name=name,
    )

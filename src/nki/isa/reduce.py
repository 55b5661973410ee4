"""The vector engine along the free dimension: reductions, scans, statistics, selections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nki.isa.legacy import takes_dtype
from nki.isa.operands import Operand, emit, operand, optional, tile
from nki.program import operators
from nki.program.enums import Engine as _Engine
from nki.program.enums import reduce_cmd
from nki.program.ir import NkiInstruction
from nki.program.tensor import NkiTensor

FP32_MIN = -3.4028234663852886e38


def _with_result(dst: NkiTensor, reduce_res: NkiTensor | None) -> dict[str, NkiTensor]:
    outputs = {"dst": tile(dst, "dst")}
    if reduce_res is not None:
        outputs["reduce_res"] = tile(reduce_res, "reduce_res")
    return outputs


@takes_dtype
def tensor_reduce(
    dst: NkiTensor,
    op: Any,
    data: NkiTensor,
    axis: int | Sequence[int],
    negate: bool = False,
    keepdims: bool = False,
    name: str | None = None,
) -> NkiInstruction:
    """dst := data reduced over its last free axes; keepdims only describes dst's shape."""
    source = tile(data, "data")
    axes = (axis,) if isinstance(axis, int) else tuple(int(item) for item in axis)
    axes = tuple(sorted(item % source.ndim for item in axes))
    return emit(
        "tensor_reduce",
        _Engine.vector,
        {"dst": tile(dst, "dst")},
        {"data": source},
        {
            "op": operators.reduction(op).name,
            "axes": axes,
            "negate": negate,
            "keepdims": keepdims,
        },
        name=name,
    )


@takes_dtype
def tensor_scalar_reduce(
    dst: NkiTensor,
    data: NkiTensor,
    op0: Any,
    operand0: Operand,
    reduce_op: Any,
    reduce_res: NkiTensor | None = None,
    reverse0: bool = False,
    reduce_cmd: reduce_cmd = reduce_cmd.reset_reduce,
    reduce_init: Operand | None = None,
    reduce_res_negate: bool = False,
    name: str | None = None,
) -> NkiInstruction:
    """dst := data op0 operand0, and reduce_res := the results reduced over the free axes."""
    return emit(
        "tensor_scalar_reduce",
        _Engine.vector,
        _with_result(dst, reduce_res),
        {
            "data": tile(data, "data"),
            "operand0": operand(operand0, "operand0"),
            "reduce_init": optional(reduce_init, "reduce_init"),
        },
        {
            "op0": operators.alu(op0, role="op0").name,
            "reverse0": reverse0,
            "reduce_op": operators.reduction(reduce_op, role="reduce_op").name,
            "reduce_cmd": reduce_cmd,
            "reduce_res_negate": reduce_res_negate,
        },
        name=name,
    )


def tensor_scalar_cumulative(
    dst: NkiTensor,
    src: NkiTensor,
    op0: Any,
    op1: Any,
    imm0: Operand,
    imm1: Operand | None = None,
    reduce_cmd: reduce_cmd = reduce_cmd.reset_reduce,
    name: str | None = None,
) -> NkiInstruction:
    """dst[i] := op1-reduction of (src[0..i] op0 imm0); load_reduce starts from imm1."""
    return emit(
        "tensor_scalar_cumulative",
        _Engine.vector,
        {"dst": tile(dst, "dst")},
        {
            "src": tile(src, "src"),
            "imm0": operand(imm0, "imm0"),
            "imm1": optional(imm1, "imm1"),
        },
        {
            "op0": operators.alu(op0, role="op0").name,
            "op1": operators.alu(op1, role="op1").name,
            "reduce_cmd": reduce_cmd,
        },
        name=name,
    )


@takes_dtype
def tensor_tensor_scan(
    dst: NkiTensor,
    data0: NkiTensor,
    data1: NkiTensor,
    initial: Operand,
    op0: Any,
    op1: Any,
    reverse0: bool = False,
    reverse1: bool = False,
    name: str | None = None,
) -> NkiInstruction:
    """dst[i] := (data0[i] op0 dst[i-1]) op1 data1[i], with dst[-1] = initial, in fp32."""
    return emit(
        "tensor_tensor_scan",
        _Engine.vector,
        {"dst": tile(dst, "dst")},
        {
            "data0": tile(data0, "data0"),
            "data1": tile(data1, "data1"),
            "initial": operand(initial, "initial"),
        },
        {
            "op0": operators.alu(op0, role="op0").name,
            "op1": operators.alu(op1, role="op1").name,
            "reverse0": reverse0,
            "reverse1": reverse1,
        },
        name=name,
    )


def bn_stats(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> NkiInstruction:
    """dst := count, mean, variance * count of the even, then of the odd elements."""
    return emit(
        "bn_stats",
        _Engine.vector,
        {"dst": tile(dst, "dst")},
        {"data": tile(data, "data")},
        name=name,
    )


def bn_aggr(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> NkiInstruction:
    """dst := mean and variance of (count, mean, variance * count) triples."""
    return emit(
        "bn_aggr",
        _Engine.vector,
        {"dst": tile(dst, "dst")},
        {"data": tile(data, "data")},
        name=name,
    )


def range_select(
    dst: NkiTensor,
    on_true_tile: NkiTensor,
    comp_op0: Any,
    comp_op1: Any,
    bound0: NkiTensor,
    bound1: NkiTensor,
    reduce_cmd: reduce_cmd = reduce_cmd.reset_reduce,
    reduce_res: NkiTensor | None = None,
    reduce_op: Any = "maximum",
    range_start: int = 0,
    on_false_value: float = FP32_MIN,
    name: str | None = None,
) -> NkiInstruction:
    """Keep elements whose index i meets (i comp_op0 bound0) and (i comp_op1 bound1)."""
    return emit(
        "range_select",
        _Engine.vector,
        _with_result(dst, reduce_res),
        {
            "on_true_tile": tile(on_true_tile, "on_true_tile"),
            "bound0": operand(bound0, "bound0"),
            "bound1": operand(bound1, "bound1"),
        },
        {
            "comp_op0": operators.alu(comp_op0, role="comp_op0").name,
            "comp_op1": operators.alu(comp_op1, role="comp_op1").name,
            "reduce_cmd": reduce_cmd,
            "reduce_op": operators.reduction(reduce_op, role="reduce_op").name,
            "range_start": range_start,
            "on_false_value": float(on_false_value),
        },
        name=name,
    )


def select_reduce(
    dst: NkiTensor,
    predicate: NkiTensor,
    on_true: NkiTensor,
    on_false: Operand,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: reduce_cmd = reduce_cmd.idle,
    reduce_op: Any = "maximum",
    reverse_pred: bool = False,
    name: str | None = None,
) -> NkiInstruction:
    """dst := on_true where predicate is not 0, else on_false; optional running maximum."""
    return emit(
        "select_reduce",
        _Engine.vector,
        _with_result(dst, reduce_res),
        {
            "predicate": tile(predicate, "predicate"),
            "on_true": tile(on_true, "on_true"),
            "on_false": operand(on_false, "on_false"),
        },
        {
            "reduce_cmd": reduce_cmd,
            "reduce_op": operators.reduction(reduce_op, role="reduce_op").name,
            "reverse_pred": reverse_pred,
        },
        name=name,
    )


def max8(dst: NkiTensor, src: NkiTensor, name: str | None = None) -> NkiInstruction:
    """dst := the 8 largest values of each partition, descending."""
    return emit(
        "max8", _Engine.vector, {"dst": tile(dst, "dst")}, {"src": tile(src, "src")}, name=name
    )


def nc_find_index8(
    dst: NkiTensor, data: NkiTensor, vals: NkiTensor, name: str | None = None
) -> NkiInstruction:
    """dst := where each of 8 values first occurs; equal values take successive places."""
    return emit(
        "nc_find_index8",
        _Engine.vector,
        {"dst": tile(dst, "dst")},
        {"data": tile(data, "data"), "vals": tile(vals, "vals")},
        name=name,
    )


def nc_match_replace8(
    dst: NkiTensor,
    data: NkiTensor,
    vals: NkiTensor,
    imm: float,
    dst_idx: NkiTensor | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """dst := data with the first match of each of 8 values replaced by imm."""
    outputs = {"dst": tile(dst, "dst")}
    if dst_idx is not None:
        outputs["dst_idx"] = tile(dst_idx, "dst_idx")
    return emit(
        "nc_match_replace8",
        _Engine.vector,
        outputs,
        {"data": tile(data, "data"), "vals": tile(vals, "vals")},
        {"imm": float(imm)},
        name=name,
    )

"""The vector engine, element by element: copies, arithmetic, conversions."""

from __future__ import annotations

from typing import Any

from nki.isa.legacy import takes_dtype
from nki.isa.operands import Operand, choose, emit, operand, optional, tile
from nki.program import operators
from nki.program.enums import Engine as _Engine
from nki.program.enums import engine, reduce_cmd
from nki.program.ir import NkiInstruction
from nki.program.storage import MemoryRegion
from nki.program.tensor import NkiTensor


@takes_dtype
def tensor_copy(
    dst: NkiTensor,
    src: NkiTensor,
    engine: engine = engine.unknown,
    name: str | None = None,
) -> NkiInstruction:
    """dst := src on chip; bit-exact for equal dtypes on Vector and GpSimd, else through fp32."""
    return emit(
        "tensor_copy",
        choose(engine, _Engine.vector),
        {"dst": tile(dst, "dst")},
        {"src": tile(src, "src")},
        name=name,
    )


@takes_dtype
def memset(
    dst: NkiTensor,
    value: float,
    engine: engine = engine.unknown,
    name: str | None = None,
) -> NkiInstruction:
    """Fill dst with a number known at compile time."""
    return emit(
        "memset",
        choose(engine, _Engine.vector),
        {"dst": tile(dst, "dst")},
        {"value": operand(value, "value")},
        name=name,
    )


def tensor_copy_predicated(
    dst: NkiTensor,
    src: Operand,
    predicate: NkiTensor,
    reverse_pred: bool = False,
    name: str | None = None,
) -> NkiInstruction:
    """dst[i] := src[i] where predicate[i] is not 0; the other elements stay."""
    return emit(
        "tensor_copy_predicated",
        _Engine.vector,
        {"dst": tile(dst, "dst")},
        {"src": operand(src, "src"), "predicate": tile(predicate, "predicate")},
        {"reverse_pred": reverse_pred},
        name=name,
    )


@takes_dtype
def tensor_tensor(
    dst: NkiTensor,
    data1: NkiTensor,
    data2: NkiTensor,
    op: Any,
    engine: engine = engine.unknown,
    name: str | None = None,
) -> NkiInstruction:
    """dst := data1 op data2, element by element; 32-bit integers exactly on GpSimd."""
    target = tile(dst, "dst")
    first, second = tile(data1, "data1"), tile(data2, "data2")
    row = operators.alu(op)
    default = _Engine.vector
    operands = (target, first, second)
    if row.name == "power" or (
        row.group == "arithmetic"
        and all(t.dtype in ("int32", "uint32") for t in operands)
        and not any(t.buffer is MemoryRegion.psum for t in operands)
    ):
        default = _Engine.gpsimd
    return emit(
        "tensor_tensor",
        choose(engine, default),
        {"dst": target},
        {"data1": first, "data2": second},
        {"op": row.name},
        name=name,
    )


@takes_dtype
def tensor_scalar(
    dst: NkiTensor,
    data: NkiTensor,
    op0: Any,
    operand0: Operand | None,
    reverse0: bool = False,
    op1: Any = None,
    operand1: Operand | None = None,
    reverse1: bool = False,
    engine: engine = engine.unknown,
    name: str | None = None,
) -> NkiInstruction:
    """dst := (data op0 operand0) op1 operand1, the operands being numbers or [P, 1] columns."""
    first = operators.alu(op0, role="op0")
    second = None if op1 is None else operators.alu(op1, role="op1").name
    default = _Engine.gpsimd if first.name == "rsqrt" else _Engine.vector
    return emit(
        "tensor_scalar",
        choose(engine, default),
        {"dst": tile(dst, "dst")},
        {
            "data": tile(data, "data"),
            "operand0": optional(operand0, "operand0"),
            "operand1": optional(operand1, "operand1"),
        },
        {"op0": first.name, "op1": second, "reverse0": reverse0, "reverse1": reverse1},
        name=name,
    )


@takes_dtype
def scalar_tensor_tensor(
    dst: NkiTensor,
    data: NkiTensor,
    op0: Any,
    operand0: Operand,
    op1: Any,
    operand1: NkiTensor,
    reverse0: bool = False,
    reverse1: bool = False,
    name: str | None = None,
) -> NkiInstruction:
    """dst := (data op0 operand0) op1 operand1, operand1 being a tile."""
    return emit(
        "scalar_tensor_tensor",
        _Engine.vector,
        {"dst": tile(dst, "dst")},
        {
            "data": tile(data, "data"),
            "operand0": operand(operand0, "operand0"),
            "operand1": tile(operand1, "operand1"),
        },
        {
            "op0": operators.alu(op0, role="op0").name,
            "op1": operators.alu(op1, role="op1").name,
            "reverse0": reverse0,
            "reverse1": reverse1,
        },
        name=name,
    )


@takes_dtype
def reciprocal(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> NkiInstruction:
    """dst := 1 / data in fp32."""
    return emit(
        "reciprocal",
        _Engine.vector,
        {"dst": tile(dst, "dst")},
        {"data": tile(data, "data")},
        name=name,
    )


def exponential(
    dst: NkiTensor,
    src: NkiTensor,
    max_value: Operand = 0.0,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: reduce_cmd = reduce_cmd.idle,
    reduce_init: Operand = 0.0,
    name: str | None = None,
) -> NkiInstruction:
    """dst := exp(src - max_value), with an optional running sum (trn3)."""
    outputs = {"dst": tile(dst, "dst")}
    if reduce_res is not None:
        outputs["reduce_res"] = tile(reduce_res, "reduce_res")
    return emit(
        "exponential",
        _Engine.vector,
        outputs,
        {
            "src": tile(src, "src"),
            "max_value": operand(max_value, "max_value"),
            "reduce_init": operand(reduce_init, "reduce_init"),
        },
        {"reduce_cmd": reduce_cmd},
        name=name,
    )


def nc_stream_shuffle(
    dst: NkiTensor, src: NkiTensor, shuffle_mask: list[int], name: str | None = None
) -> NkiInstruction:
    """Within each 32 partitions, row i := row shuffle_mask[i] of src; 255 leaves row i."""
    return emit(
        "nc_stream_shuffle",
        _Engine.vector,
        {"dst": tile(dst, "dst")},
        {"src": tile(src, "src")},
        {"shuffle_mask": tuple(int(entry) for entry in shuffle_mask)},
        name=name,
    )


def quantize_mx(
    dst: NkiTensor, src: NkiTensor, dst_scale: NkiTensor, name: str | None = None
) -> NkiInstruction:
    """dst, dst_scale := src as MXFP8, one power-of-two scale for 8 partitions x 4 elements."""
    return emit(
        "quantize_mx",
        _Engine.vector,
        {"dst": tile(dst, "dst"), "dst_scale": tile(dst_scale, "dst_scale")},
        {"src": tile(src, "src")},
        name=name,
    )

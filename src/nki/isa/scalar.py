"""The scalar engine: functions from its tables, with scale, bias and a running sum."""

from __future__ import annotations

from typing import Any

from nki.isa.legacy import takes_dtype
from nki.isa.operands import Operand, emit, operand, optional, tile
from nki.program import operators
from nki.program.enums import Engine as _Engine
from nki.program.enums import reduce_cmd
from nki.program.ir import NkiInstruction
from nki.program.tensor import NkiTensor


@takes_dtype
def activation(
    dst: NkiTensor,
    op: Any,
    data: NkiTensor,
    bias: Operand | None = None,
    scale: Operand = 1.0,
    reduce_op: Any = None,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: reduce_cmd = reduce_cmd.idle,
    name: str | None = None,
) -> NkiInstruction:
    """dst := op(data * scale + bias), in fp32; optionally add each partition's results up."""
    outputs = {"dst": tile(dst, "dst")}
    if reduce_res is not None:
        outputs["reduce_res"] = tile(reduce_res, "reduce_res")
    return emit(
        "activation",
        _Engine.scalar,
        outputs,
        {
            "data": tile(data, "data"),
            "bias": optional(bias, "bias"),
            "scale": operand(1.0 if scale is None else scale, "scale"),
        },
        {
            "op": operators.activation(op),
            "reduce_op": None if reduce_op is None else operators.alu(reduce_op).name,
            "reduce_cmd": reduce_cmd,
        },
        name=name,
    )


@takes_dtype
def activation_reduce(
    dst: NkiTensor,
    op: Any,
    data: NkiTensor,
    reduce_op: Any,
    reduce_res: NkiTensor,
    bias: Operand | None = None,
    scale: Operand = 1.0,
    name: str | None = None,
) -> NkiInstruction:
    """activation that also writes the sum of its results, starting from 0."""
    return activation(
        dst,
        op,
        data,
        bias,
        scale,
        reduce_op,
        reduce_res,
        reduce_cmd.reset_reduce,
        name,
    )


_ACTIVATE2_OPS = {
    ("multiply", "add"),
    ("multiply", "subtract"),
    ("multiply", "bypass"),
    ("add", "bypass"),
    ("subtract", "bypass"),
    ("bypass", "bypass"),
}


def activate2(
    dst: NkiTensor,
    op: Any,
    data: NkiTensor,
    imm0: Operand,
    imm1: Operand,
    op0: Any,
    op1: Any,
    relu_param: Operand = 0.0,
    reverse0: bool = False,
    reverse1: bool = False,
    reduce_op: Any = None,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: reduce_cmd = reduce_cmd.idle,
    name: str | None = None,
) -> NkiInstruction:
    """dst := op((data op0 imm0) op1 imm1), in fp32, with an optional reduction (trn3)."""
    from nki.errors import NkiValidationError

    pair = (operators.alu(op0, role="op0").name, operators.alu(op1, role="op1").name)
    if pair not in _ACTIVATE2_OPS:
        legal = ", ".join("+".join(pair) for pair in sorted(_ACTIVATE2_OPS))
        raise NkiValidationError(f"nisa.activate2: op0, op1 are {pair}; possible are {legal}.")
    outputs = {"dst": tile(dst, "dst")}
    if reduce_res is not None:
        outputs["reduce_res"] = tile(reduce_res, "reduce_res")
    return emit(
        "activate2",
        _Engine.scalar,
        outputs,
        {
            "data": tile(data, "data"),
            "imm0": optional(imm0, "imm0"),
            "imm1": optional(imm1, "imm1"),
            "relu_param": operand(relu_param, "relu_param"),
        },
        {
            "op": operators.activation(op),
            "op0": pair[0],
            "op1": pair[1],
            "reverse0": reverse0,
            "reverse1": reverse1,
            "reduce_op": None if reduce_op is None else operators.alu(reduce_op).name,
            "reduce_cmd": reduce_cmd,
        },
        name=name,
    )

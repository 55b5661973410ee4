"""The vector engine's element-wise instructions (also on Scalar and GpSimd where those do them)."""

from __future__ import annotations

from typing import Any

import numpy as np

from nki import dtypes
from nki.program.enums import Engine
from nki.program.ir import NkiInstruction
from nki.program.operators import OPERATORS
from nki.program.tensor import NkiTensor
from nki.simulator import alu
from nki.simulator.memory import Array, Machine
from nki.simulator.semantics.accumulator import accumulate
from nki.simulator.semantics.table import means


def column(machine: Machine, operand: Any, like: NkiTensor) -> Any:
    """A number or [P, 1] column, shaped to broadcast over the elements of `like`."""
    values = machine.load(operand)
    if isinstance(operand, NkiTensor):
        return values.reshape(-1, *(1,) * (like.ndim - 1))
    return values


@means("tensor_copy")
def _tensor_copy(machine: Machine, instruction: NkiInstruction) -> None:
    dst, src = instruction.outputs["dst"], instruction.inputs["src"]
    if dst.dtype == src.dtype and instruction.engine is not Engine.scalar:
        machine.store(dst, machine.raw(src))
    elif dtypes.row(src.dtype).kind == "packed" or dtypes.row(dst.dtype).kind == "packed":
        machine.store(dst, machine.raw(src).view(dtypes.row(dst.dtype).numpy))
    else:
        machine.store(dst, machine.load(src))


@means("memset")
def _memset(machine: Machine, instruction: NkiInstruction) -> None:
    dst = instruction.outputs["dst"]
    value = machine.value(instruction.inputs["value"])
    row = dtypes.row(dst.dtype)
    if row.kind == "packed":
        machine.store(dst, np.zeros(dst.shape, row.numpy))
    elif row.kind == "float":
        machine.store(dst, np.full(dst.shape, value, np.float32))
    else:
        machine.store(dst, np.full(dst.shape, int(value), np.int64))


@means("tensor_copy_predicated")
def _tensor_copy_predicated(machine: Machine, instruction: NkiInstruction) -> None:
    dst, src = instruction.outputs["dst"], instruction.inputs["src"]
    chosen = machine.raw(instruction.inputs["predicate"]).reshape(dst.shape) != 0
    if instruction.attributes["reverse_pred"]:
        chosen = ~chosen
    if isinstance(src, NkiTensor) and src.dtype == dst.dtype:
        values = machine.raw(src)
    else:
        values = dtypes.cast(np.asarray(machine.load(src)), dst.dtype)
    values = values.reshape(dst.shape) if values.size > 1 else values
    machine.store(dst, np.where(chosen, values, machine.raw(dst)))


@means("tensor_tensor")
def _tensor_tensor(machine: Machine, instruction: NkiInstruction) -> None:
    dst = instruction.outputs["dst"]
    first, second = instruction.inputs["data1"], instruction.inputs["data2"]
    op = instruction.attributes["op"]
    if OPERATORS[op].is_bitvec:
        raw = machine.raw(second).reshape(first.shape)
        machine.store(dst, alu.bitwise(op, machine.raw(first), raw))
        return
    if instruction.engine is Engine.gpsimd and all(
        t.dtype in ("int32", "uint32") for t in (dst, first, second)
    ):
        exact = alu.integer(op, machine.raw(first), machine.raw(second).reshape(first.shape))
        if exact is not None:
            kind = dtypes.row(dst.dtype).numpy
            machine.store(dst, exact.astype(np.int64).astype(kind))
            return
    other = machine.load(second).reshape(first.shape)
    machine.store(dst, alu.apply(op, machine.load(first), other))


def _two_step(
    machine: Machine, instruction: NkiInstruction, data: NkiTensor, *, last_is_tile: bool = False
) -> Array:
    attributes = instruction.attributes
    values = machine.load(data)
    first = instruction.inputs.get("operand0")
    values = alu.apply(
        attributes["op0"],
        values,
        None if first is None else column(machine, first, data),
        reverse=attributes.get("reverse0", False) and first is not None,
    )
    op1 = attributes.get("op1")
    if op1 is None:
        return np.asarray(values)
    second = instruction.inputs.get("operand1")
    if last_is_tile:
        other = machine.load(second).reshape(data.shape)
    else:
        other = None if second is None else column(machine, second, data)
    reverse = attributes.get("reverse1", False) and second is not None
    return np.asarray(alu.apply(op1, values, other, reverse=reverse))


@means("tensor_scalar")
def _tensor_scalar(machine: Machine, instruction: NkiInstruction) -> None:
    dst, data = instruction.outputs["dst"], instruction.inputs["data"]
    op0 = instruction.attributes["op0"]
    if not OPERATORS[op0].is_bitvec:
        machine.store(dst, _two_step(machine, instruction, data))
        return
    values = machine.raw(data)
    for op, role, flip in (("op0", "operand0", "reverse0"), ("op1", "operand1", "reverse1")):
        name = instruction.attributes[op]
        if name is None:
            continue
        other = instruction.inputs.get(role)
        if isinstance(other, NkiTensor):
            other = np.broadcast_to(
                machine.raw(other).reshape(-1, *(1,) * (data.ndim - 1)), data.shape
            )
        elif other is not None:
            other = machine.value(other)
        if instruction.attributes[flip] and other is not None:
            pattern = np.broadcast_to(np.asarray(other, values.dtype), data.shape)
            values = alu.bitwise(name, pattern, values)
        else:
            values = alu.bitwise(name, values, 0 if other is None else other)
    machine.store(dst, values)


@means("scalar_tensor_tensor")
def _scalar_tensor_tensor(machine: Machine, instruction: NkiInstruction) -> None:
    data = instruction.inputs["data"]
    machine.store(
        instruction.outputs["dst"], _two_step(machine, instruction, data, last_is_tile=True)
    )


@means("reciprocal")
def _reciprocal(machine: Machine, instruction: NkiInstruction) -> None:
    with np.errstate(all="ignore"):
        machine.store(
            instruction.outputs["dst"], np.float32(1) / machine.load(instruction.inputs["data"])
        )


@means("exponential")
def _exponential(machine: Machine, instruction: NkiInstruction) -> None:
    src = instruction.inputs["src"]
    with np.errstate(all="ignore"):
        values = np.exp(
            machine.load(src) - column(machine, instruction.inputs["max_value"], src)
        ).astype(np.float32)
    accumulate(machine, instruction, values, "add", init=instruction.inputs["reduce_init"])
    machine.store(instruction.outputs["dst"], values)


@means("nc_stream_shuffle")
def _nc_stream_shuffle(machine: Machine, instruction: NkiInstruction) -> None:
    dst, src = instruction.outputs["dst"], instruction.inputs["src"]
    values = machine.raw(src).reshape(src.shape[0], -1).copy()
    result = machine.raw(dst).reshape(dst.shape[0], -1).copy()
    mask = instruction.attributes["shuffle_mask"]
    for row in range(dst.shape[0]):
        source = mask[row % 32]
        origin = row - row % 32 + source
        if source != 255 and origin < values.shape[0]:
            result[row] = values[origin]
    machine.store(dst, result)


_MAX_EXPONENT = {"float8_e4m3fn_x4": 8, "float8_e5m2_x4": 15}


@means("quantize_mx")
def _quantize_mx(machine: Machine, instruction: NkiInstruction) -> None:
    dst, scale = instruction.outputs["dst"], instruction.outputs["dst_scale"]
    src = instruction.inputs["src"]
    partitions = src.shape[0]
    values = machine.load(src).reshape(partitions // 8, 8, -1, 4)
    peak = np.abs(values).max(axis=(1, 3))
    with np.errstate(all="ignore"):
        exponent = np.floor(np.log2(peak)) - (_MAX_EXPONENT[dst.dtype] - 1)
    exponent = np.clip(np.where(peak == 0, -127, exponent), -127, 127)
    scaled = values / np.exp2(exponent)[:, None, :, None]
    packed = dtypes.row(dst.dtype)
    assert packed.packed_as is not None
    narrow = scaled.reshape(partitions, -1).astype(np.float32).astype(packed.packed_as)
    machine.store(dst, np.ascontiguousarray(narrow).view(packed.numpy))
    codes = (exponent + 127).astype(np.uint8)
    target = machine.array(scale).view(np.uint8).reshape(scale.shape[0], -1)
    for group in range(partitions // 8):
        row = group // 4 * 32 + group % 4
        if row < target.shape[0]:
            target[row] = codes[group]
    machine.array(scale).view(np.uint8)[...] = target.reshape(scale.shape)

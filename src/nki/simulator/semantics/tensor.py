"""The tensor engine: products summed in fp32, and transposes of bit patterns."""

from __future__ import annotations

import numpy as np

from nki import dtypes
from nki.program.enums import Engine, matmul_perf_mode
from nki.program.ir import NkiInstruction
from nki.program.tensor import NkiTensor
from nki.simulator.memory import Array, Machine
from nki.simulator.semantics.table import means

_GROUP = 32  # partitions that share an index list in tensor indirection


def _operand(machine: Machine, tensor: NkiTensor) -> Array:
    values: Array = machine.load(tensor, group=_GROUP)
    if tensor.dtype == "tfloat32":
        values = dtypes.round_tfloat32(values)
    return values.reshape(values.shape[0], -1)


def _accumulate(machine: Machine, instruction: NkiInstruction, product: Array) -> None:
    dst = instruction.outputs["dst"]
    flag = instruction.attributes["accumulate"]
    shaped = product.reshape(dst.shape)
    mask = (
        machine.product_mask(dst) if flag is None or dst.storage.index in machine.products else None
    )
    if flag is not False:
        earlier = machine.load(dst, group=_GROUP).reshape(dst.shape)
        with np.errstate(all="ignore"):
            total = earlier + shaped
        if flag is None:
            assert mask is not None
            shaped = np.where(mask, total, shaped)
        elif flag is True:
            shaped = total
        else:
            shaped = np.where(flag, total, shaped)
    machine.store(dst, shaped, group=_GROUP)
    if mask is not None:
        machine.product_mask(dst)[...] = True


@means("nc_matmul")
def _nc_matmul(machine: Machine, instruction: NkiInstruction) -> None:
    stationary = _operand(machine, instruction.inputs["stationary"])
    moving = _operand(machine, instruction.inputs["moving"])
    if instruction.attributes["perf_mode"] is matmul_perf_mode.double_row:
        rows = stationary.shape[0]
        stationary = stationary.reshape(2 * rows, -1)
        moving = moving.reshape(2 * rows, -1)
    with np.errstate(all="ignore"):
        product = stationary.T @ moving
    _accumulate(machine, instruction, product)


@means("nc_matmul_mx")
def _nc_matmul_mx(machine: Machine, instruction: NkiInstruction) -> None:
    sides = []
    for role in ("stationary", "moving"):
        tensor: NkiTensor = instruction.inputs[role]
        values = dtypes.unpack(machine.raw(tensor, group=_GROUP), tensor.dtype)
        values = values.reshape(tensor.shape[0], tensor.free_elements, 4)
        scale = instruction.inputs[f"{role}_scale"]
        sides.append(values * mx_scales(machine, scale, tensor)[:, :, None])
    with np.errstate(all="ignore"):
        product = np.einsum("kmi,kni->mn", sides[0], sides[1], optimize=True)
    _accumulate(machine, instruction, product.astype(np.float32))


def mx_scales(machine: Machine, scale: NkiTensor, data: NkiTensor) -> Array:
    """The scale of each partition and column: one for 8 partitions, 4 rows a quadrant."""
    exponents = machine.raw(scale, group=_GROUP).view(np.uint8).reshape(scale.shape[0], -1)
    partitions = np.arange(data.shape[0])
    rows = (partitions // 32) * 32 + (partitions % 32) // 8
    if scale.shape[0] < data.shape[0]:  # only the valid rows of one quadrant were passed
        rows = np.minimum(rows, scale.shape[0] - 1)
    picked = exponents[rows].astype(np.float32)
    values = np.exp2(picked - np.float32(127))
    return np.where(picked == 255, np.float32(np.nan), values).astype(np.float32)


@means("nc_transpose")
def _nc_transpose(machine: Machine, instruction: NkiInstruction) -> None:
    dst, data = instruction.outputs["dst"], instruction.inputs["data"]
    group = _GROUP if instruction.engine is Engine.tensor else 16
    values = machine.raw(data, group=group)
    turned = values.reshape(values.shape[0], -1).T
    machine.store(dst, np.ascontiguousarray(turned), group=group)

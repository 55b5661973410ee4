"""DMA: copies, transposes, and sums in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nki import dtypes
from nki.errors import DeviceTrapError
from nki.program.enums import oob_mode
from nki.program.ir import NkiInstruction
from nki.program.tensor import NkiTensor
from nki.simulator.memory import Array, Machine
from nki.simulator.semantics.table import means


def _converted(values: Array, source: str, target: str) -> Array:
    if source == target or dtypes.row(source).kind == "packed":
        return (
            values.view(dtypes.row(target).numpy)
            if values.dtype.itemsize == dtypes.itemsize(target)
            else values
        )
    return dtypes.cast(dtypes.to_float32(values, source), target)


def _reach(
    machine: Machine, tensor: NkiTensor, instruction: NkiInstruction
) -> tuple[Array, Any] | None:
    """Addresses and validity of an indirect operand, None for a plain one."""
    if tensor.dynamic is None:
        return None
    addresses, valid = machine.addresses(tensor)
    if not valid.all() and instruction.attributes["oob_mode"] is oob_mode.error:
        bad = int(addresses[~valid].reshape(-1)[0])
        raise DeviceTrapError(
            f"nisa.{instruction.opcode}: a run-time index sends {tensor!r} to element {bad} of "
            f"{machine.flat(tensor).size}. Fix the index, or drop such rows with "
            "oob_mode=nisa.oob_mode.skip.",
            source=instruction.source,
        )
    return addresses, valid


def _read(machine: Machine, tensor: NkiTensor, reach: tuple[Array, Any] | None) -> Array:
    if reach is None:
        return machine.raw(tensor)
    addresses, valid = reach
    return machine.flat(tensor)[np.where(valid, addresses, 0)]


@means("dma_copy")
def _dma_copy(machine: Machine, instruction: NkiInstruction) -> None:
    dst, src = instruction.outputs["dst"], instruction.inputs["src"]
    source, target = _reach(machine, src, instruction), _reach(machine, dst, instruction)
    values = _converted(_read(machine, src, source), src.dtype, dst.dtype)
    if source is None and target is None:
        machine.array(dst)[...] = values if values.shape == dst.shape else values.reshape(dst.shape)
        return
    keep: npt.NDArray[np.bool_] = np.ones(dst.shape, np.bool_)
    if source is not None:
        keep &= source[1].reshape(dst.shape)
    values = values.reshape(dst.shape)
    if target is None:
        machine.array(dst)[keep] = values[keep]
    else:
        addresses, valid = target
        keep &= valid
        machine.flat(dst)[addresses[keep]] = values[keep]


@means("dma_transpose")
def _dma_transpose(machine: Machine, instruction: NkiInstruction) -> None:
    dst, src = instruction.outputs["dst"], instruction.inputs["src"]
    values = _read(machine, src, _reach(machine, src, instruction))
    moved = values.transpose(instruction.attributes["axes"])
    array = machine.array(dst)
    array[...] = moved.reshape(dst.shape).view(array.dtype)


@means("dma_compute")
def _dma_compute(machine: Machine, instruction: NkiInstruction) -> None:
    dst = instruction.outputs["dst"]
    target = _reach(machine, dst, instruction)
    keep = np.ones(dst.shape, np.bool_)
    total = np.zeros(dst.shape, np.float32)
    for src in instruction.inputs["srcs"]:
        reach = _reach(machine, src, instruction)
        values = dtypes.to_float32(_read(machine, src, reach), src.dtype).reshape(dst.shape)
        if reach is not None:
            keep &= reach[1].reshape(dst.shape)
        total += np.where(keep, values, 0)
    values = dtypes.cast(total, dst.dtype)
    if target is None:
        machine.array(dst)[keep] = values[keep]
    else:
        addresses, valid = target
        keep &= valid
        machine.flat(dst)[addresses[keep]] = values[keep]

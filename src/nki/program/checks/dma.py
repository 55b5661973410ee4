"""Legality of DMA instructions."""

from __future__ import annotations

from neuron_chip import Chip
from nki import dtypes
from nki.errors import UnsupportedError
from nki.program.checks.table import check, fail
from nki.program.enums import Engine, dge_mode
from nki.program.ir import NkiInstruction
from nki.program.storage import MemoryRegion
from nki.program.tensor import NkiTensor


@check("dma_copy")
def _dma_copy(instruction: NkiInstruction, chip: Chip) -> None:
    dst, src = instruction.outputs["dst"], instruction.inputs["src"]
    if dst.size != src.size:
        fail(
            instruction,
            f"dst {dst!r} has {dst.size} elements and src {src!r} has {src.size}. "
            "Slice them to the same number.",
        )
    mode = instruction.attributes["dge_mode"]
    if mode is dge_mode.hwdge:
        if chip.generation < 3:
            raise UnsupportedError(f"dge_mode.hwdge needs trn2 or later, not {chip.name}.")
        if dst.dtype != src.dtype:
            fail(
                instruction,
                f"dge_mode.hwdge cannot convert {src.dtype} to {dst.dtype}. Use "
                "dge_mode.swdge, or cast with nisa.tensor_copy.",
            )
    issuing = instruction.attributes["issuing_engine"]
    if issuing is not Engine.unknown and (
        mode is not dge_mode.hwdge or issuing not in (Engine.sync, Engine.scalar)
    ):
        fail(
            instruction,
            f"engine={issuing.name} is possible only as sync or scalar with "
            "dge_mode=nisa.dge_mode.hwdge.",
        )
    _check_priority(instruction, chip)
    packed = [t for t in (dst, src) if dtypes.row(t.dtype).kind == "packed"]
    if packed and dst.dtype != src.dtype and dst.itemsize != src.itemsize:
        fail(instruction, f"packed {packed[0].dtype} cannot be converted by a DMA.")
    for tensor in (dst, src):
        dynamic = tensor.dynamic
        if dynamic is not None and dynamic.per_partition:
            index = dynamic.index
            if isinstance(index, NkiTensor) and index.buffer is not MemoryRegion.sbuf:
                fail(instruction, f"the vector_offset {index!r} must be in SBUF.")
            if tensor.on_chip:
                fail(instruction, f"a vector_offset needs its tensor in HBM, not {tensor!r}.")


def _check_priority(instruction: NkiInstruction, chip: Chip) -> None:
    priority = instruction.attributes.get("priority")
    if priority is None:
        return
    if chip.generation < 4:
        raise UnsupportedError(f"DMA priorities need trn3, not {chip.name}. Leave priority out.")
    if not 0 <= int(priority) <= 3:
        fail(instruction, f"priority={priority} is not in 0..3 (0 is the most urgent).")


@check("dma_transpose")
def _dma_transpose(instruction: NkiInstruction, chip: Chip) -> None:
    dst, src = instruction.outputs["dst"], instruction.inputs["src"]
    axes = instruction.attributes["axes"]
    legal = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}
    if src.ndim not in legal or axes != legal[src.ndim]:
        fail(
            instruction,
            f"axes={axes} of a {src.ndim}-D src; DMA transposes are 2-D (1, 0), 3-D (2, 1, 0) "
            "and 4-D (3, 1, 2, 0).",
        )
    if dst.size != src.size:
        fail(instruction, f"dst has {dst.size} elements, src has {src.size}.")
    if dst.itemsize != src.itemsize:
        fail(instruction, f"dst is {dst.dtype} and src is {src.dtype}; they must be the same.")
    if instruction.attributes["dge_mode"] is dge_mode.hwdge and src.itemsize != 2:
        fail(instruction, f"dge_mode.hwdge transposes 2-byte types, not {src.dtype}.")
    _check_priority(instruction, chip)


@check("dma_compute")
def _dma_compute(instruction: NkiInstruction, _chip: Chip) -> None:
    srcs = instruction.inputs["srcs"]
    dst = instruction.outputs["dst"]
    if not 1 <= len(srcs) <= 16:
        fail(instruction, f"{len(srcs)} sources; 1 to 16 are possible.")
    if instruction.attributes["reduce_op"] != "add":
        fail(instruction, f"reduce_op={instruction.attributes['reduce_op']}; only nl.add works.")
    for src in srcs:
        if src.size != dst.size:
            fail(instruction, f"dst has {dst.size} elements and {src!r} has {src.size}.")
    if not instruction.attributes["unique_indices"]:
        fail(instruction, "unique_indices must be True: colliding updates would be lost.")

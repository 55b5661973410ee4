"""Parts of a straight-line program that do not touch each other's tiles, to be run by threads.

Instructions that share an on-chip tile belong together, except tiles that are only loaded from
arguments and then read, such as keys that every block of queries needs: their loads come first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nki.program.enums import reduce_cmd
from nki.program.ir import NkiInstruction
from nki.program.storage import Storage
from nki.program.tensor import NkiTensor

_LOADS = ("dma_copy", "dma_transpose")
# A command that neither uses nor leaves anything in an engine's accumulators.
_SELF_CONTAINED = (reduce_cmd.reset_reduce, reduce_cmd.idle)


@dataclass(slots=True)
class Strands:
    """Positions of instructions: those that come first, and the independent parts."""

    first: list[int]
    parts: list[list[int]]


class _Sets:
    """Union-find over instruction positions."""

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))

    def find(self, item: int) -> int:
        while self._parent[item] != item:
            self._parent[item] = self._parent[self._parent[item]]
            item = self._parent[item]
        return item

    def join(self, items: Iterable[int]) -> None:
        roots = [self.find(item) for item in items]
        for root in roots[1:]:
            self._parent[self.find(root)] = self.find(roots[0])


@dataclass(slots=True)
class _Accesses:
    storage: Storage
    reads: list[int]
    writes: list[tuple[int, NkiTensor]]


def strands(instructions: Sequence[NkiInstruction]) -> Strands | None:
    """Independent parts of a program without loops, None if there are fewer than two."""
    if not all(_self_contained(item) for item in instructions):
        return None
    uses = _accesses(instructions)
    written = {index for index, use in uses.items() if use.writes}
    sets = _Sets(len(instructions))
    shared: list[_Accesses] = []
    for use in uses.values():
        writers = [position for position, _ in use.writes]
        if not use.storage.buffer.on_chip:
            if use.writes and use.reads:
                sets.join((*use.reads, *writers))
            elif use.writes:
                _join_overlapping(sets, use)
        elif _only_loaded(use, instructions, written):
            shared.append(use)
        else:
            sets.join((*use.reads, *writers))
    first: set[int] = set()
    for use in shared:
        loads = [position for position, _ in use.writes]
        readers = {sets.find(position) for position in use.reads}
        if len(readers) <= 1:
            sets.join((*loads, *readers))
        else:
            first.update(loads)
    parts: dict[int, list[int]] = defaultdict(list)
    for position in range(len(instructions)):
        if position not in first:
            parts[sets.find(position)].append(position)
    if len(parts) < 2:
        return None
    return Strands(sorted(first), list(parts.values()))


def _self_contained(item: NkiInstruction) -> bool:
    command = item.attributes.get("reduce_cmd", reduce_cmd.idle)
    if command not in _SELF_CONTAINED:
        return False
    # Idle with a result to store reads what an earlier instruction accumulated.
    return command is not reduce_cmd.idle or not (
        "reduce_res" in item.outputs and item.attributes.get("reduce_op") is None
    )


def _accesses(instructions: Sequence[NkiInstruction]) -> dict[int, _Accesses]:
    uses: dict[int, _Accesses] = {}
    for position, item in enumerate(instructions):
        for tensor in item.tensors_in():
            storage = tensor.storage
            uses.setdefault(storage.index, _Accesses(storage, [], [])).reads.append(position)
        for tensor in item.outputs.values():
            storage = tensor.storage
            use = uses.setdefault(storage.index, _Accesses(storage, [], []))
            use.writes.append((position, tensor))
    return uses


def _only_loaded(use: _Accesses, instructions: Sequence[NkiInstruction], written: set[int]) -> bool:
    """Filled by DMA from memory that the program does not write, before anything reads it."""
    if not use.writes:
        return True
    last = use.writes[-1][0]
    return all(position > last for position in use.reads) and all(
        instructions[position].opcode in _LOADS
        and all(
            not tensor.on_chip and tensor.storage.index not in written
            for tensor in instructions[position].tensors_in()
        )
        for position, _ in use.writes
    )


def _join_overlapping(sets: _Sets, use: _Accesses) -> None:
    """Writers of the same HBM bytes keep their order."""
    boxes = sorted((_box(tensor), position) for position, tensor in use.writes)
    active: list[tuple[tuple[int, int, int, int], int]] = []
    for box, position in boxes:
        active = [other for other in active if other[0][1] > box[0]]
        for other, owner in active:
            if other[2] < box[3] and box[2] < other[3]:
                sets.join((owner, position))
        active.append((box, position))


def _box(tensor: NkiTensor) -> tuple[int, int, int, int]:
    """First and last row and column (exclusive) of a view, in rows of the allocation."""
    row = max(tensor.storage.shape[-1] if tensor.storage.shape else 1, 1)
    everything = (0, max(tensor.storage.elements // row, 1), 0, row)
    if tensor.is_indirect() or tensor.dtype != tensor.storage.dtype:
        return everything
    first, column = divmod(tensor.offset, row)
    rows = columns = 0
    for size, stride in zip(tensor.shape, tensor.strides, strict=True):
        if stride % row == 0:
            rows += (size - 1) * (stride // row)
        elif 0 < stride < row:
            columns += (size - 1) * stride
        else:
            return everything
    if column + columns >= row:
        return everything
    return first, first + rows + 1, column, column + columns + 1

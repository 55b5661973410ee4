"""A program prepared for replay: stretches for the C++ core, steps for NumPy, memory."""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from nki.program.capacity import live_ranges
from nki.program.ir import Allocation, Block, Loop, NkiInstruction, Program, While
from nki.program.storage import Storage
from nki.simulator.encode import encode
from nki.simulator.exchange import MEETING
from nki.simulator.run import gives_way

_ALIGN = 64


@dataclass(frozen=True, slots=True)
class Stretch:
    """Words begin..end of the code."""

    begin: int
    end: int
    gives_way: bool = False
    """Other cores go on after this."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """Memory that must look unwritten when it is allocated."""

    storage: Storage


@dataclass(frozen=True, slots=True)
class Repeat:
    """A device loop and what it repeats."""

    loop: Loop | While
    body: list[Step]


Step = Stretch | Fresh | Repeat | NkiInstruction


@dataclass(slots=True)
class Plan:
    """One core's program, ready to run."""

    program: Program
    steps: list[Step]
    code: npt.NDArray[np.int64]
    offsets: dict[int, int]
    """Place of each on-chip allocation in the arena."""
    arena_bytes: int
    sources: dict[int, NkiInstruction] = field(default_factory=dict)
    """Instruction of each record, by its first word."""


def arena(program: Program, cleared: Collection[int] = ()) -> tuple[dict[int, int], int]:
    """Addresses for on-chip allocations: those that are never alive together share memory.

    Those in `cleared` are made to look unwritten where they are allocated.
    """
    ranges = live_ranges(program, cleared)
    order = sorted((ranges[index], index) for index in ranges)
    by_index = {storage.index: storage for storage in program.storages}
    offsets: dict[int, int] = {}
    active: list[tuple[int, int, int]] = []  # (offset, end, last use), by offset
    total = 0
    for (first, last), index in order:
        size = -(-by_index[index].num_bytes // _ALIGN) * _ALIGN
        active = [item for item in active if item[2] >= first]
        at = 0
        for offset, end, _ in active:
            if offset - at >= size:
                break
            at = max(at, end)
        offsets[index] = at
        insort(active, (at, at + size, last))
        total = max(total, at + size)
    return offsets, total


def plan(program: Program) -> Plan:
    """Encode a program."""
    words: list[int] = []
    sources: dict[int, NkiInstruction] = {}
    undecided = {
        item.outputs["dst"].storage.index
        for item in program.instructions()
        if item.opcode in ("nc_matmul", "nc_matmul_mx") and item.attributes["accumulate"] is None
    }
    cleared = program.incomplete | undecided
    offsets, total = arena(program, cleared)

    def walk(block: Block) -> list[Step]:
        steps: list[Step] = []
        for item in block.items:
            if isinstance(item, NkiInstruction):
                written = {tensor.storage.index for tensor in item.outputs.values()}
                record = None
                if item.opcode not in MEETING and not written & undecided:
                    record = encode(item)
                if record is None:
                    steps.append(item)
                    continue
                begin = len(words)
                sources[begin] = item
                words.extend(record)
                last = steps[-1] if steps else None
                pause = gives_way(program.num_cores, item)
                if isinstance(last, Stretch) and last.end == begin and not last.gives_way:
                    steps[-1] = Stretch(last.begin, len(words), pause)
                else:
                    steps.append(Stretch(begin, len(words), pause))
            elif isinstance(item, Allocation):
                storage = item.storage
                if not storage.buffer.on_chip or (
                    storage.index in offsets and storage.index in cleared
                ):
                    steps.append(Fresh(storage))
            else:
                steps.append(Repeat(item, walk(item.body)))
        return steps

    steps = walk(program.body)
    return Plan(program, steps, np.array(words, np.int64), offsets, total, sources)

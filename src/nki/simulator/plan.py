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
from nki.simulator.strands import strands
from nki.simulator.threads import Parallel, Part, worth_it

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
    parallel: Parallel | None = None
    """The same for threads, if the program is a straight line with independent parts."""
    parallel_code: npt.NDArray[np.int64] | None = None
    parallel_sources: dict[int, NkiInstruction] = field(default_factory=dict)


def arena(program: Program, cleared: Collection[int] = ()) -> tuple[dict[int, int], int]:
    """Addresses for on-chip allocations: those that are never alive together share memory.

    Those in `cleared` are made to look unwritten where they are allocated.
    """
    ranges = live_ranges(program, cleared)
    return share({storage.index: storage for storage in program.storages}, ranges)


def share(
    storages: dict[int, Storage], ranges: dict[int, tuple[int, int]]
) -> tuple[dict[int, int], int]:
    """Byte offsets for storages by first and last use, and the bytes needed in all."""
    order = sorted((ranges[index], index) for index in ranges)
    offsets: dict[int, int] = {}
    active: list[tuple[int, int, int]] = []  # (offset, end, last use), by offset
    total = 0
    for (first, last), index in order:
        size = -(-storages[index].num_bytes // _ALIGN) * _ALIGN
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
    made = Plan(program, steps, np.array(words, np.int64), offsets, total, sources)
    if not cleared and all(isinstance(step, Stretch | Fresh) for step in steps):
        _divide(made)
    return made


def _divide(made: Plan) -> None:
    """Arrange the code for threads, if the program has parts that do not need one another."""
    begins = sorted(made.sources)
    instructions = [made.sources[begin] for begin in begins]
    if made.program.num_cores > 1 or not worth_it(len(instructions)):
        return
    found = strands(instructions)
    if found is None:
        return
    storages = {storage.index: storage for storage in made.program.storages}
    code: list[npt.NDArray[np.int64]] = []
    written = 0
    placed: set[int] = set()

    def part(positions: list[int], *, keep: bool) -> tuple[Part, int]:
        nonlocal written
        begin, ranges = written, dict[int, tuple[int, int]]()
        for clock, position in enumerate(positions):
            item, word = instructions[position], begins[position]
            length = int(made.code[word + 1])
            code.append(made.code[word : word + length])
            made.parallel_sources[written] = item
            written += length
            for tensor in (*item.outputs.values(), *item.tensors_in()):
                storage = tensor.storage
                if storage.buffer.on_chip and storage.constant is None:
                    start, _ = ranges.get(storage.index, (0 if keep else clock, clock))
                    ranges[storage.index] = (start, len(positions) if keep else clock)
        ranges = {index: span for index, span in ranges.items() if index not in placed}
        offsets, total = share(storages, ranges)
        where = np.array(list(offsets), np.int64), np.array(list(offsets.values()), np.int64)
        return Part(begin, written, *where), total

    first, shared_bytes = part(found.first, keep=True)
    if not worth_it(len(instructions), shared_bytes):
        return
    placed.update(int(index) for index in first.storages)
    parts = [part(positions, keep=False) for positions in found.parts]
    made.parallel = Parallel(
        first, [item for item, _ in parts], shared_bytes, max(size for _, size in parts)
    )
    made.parallel_code = np.concatenate(code)

"""The clock: when each instruction of a program would run, from neuron_chip's costs.

Engines issue in program order; an instruction waits for its data, its engine, and memory. Values
are not needed, so nothing is executed here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from neuron_chip import Chip
from neuron_chip.cost.dma import descriptor_seconds, round_trip_seconds, transfer_seconds
from neuron_chip.instructions import Issue, completion_seconds, issue_seconds
from neuron_chip.trace import Event
from nki.program.capacity import live_ranges
from nki.program.enums import Engine, matmul_perf_mode
from nki.program.ir import Block, Loop, NkiInstruction, Program, While
from nki.program.storage import MemoryRegion
from nki.program.tensor import NkiTensor
from nki.simulator.footprint import Region, contiguous_bytes, region
from nki.simulator.space import OnChipSpace

_LANES = ("tensor", "vector", "scalar", "gpsimd", "sync", "dma")


@dataclass(slots=True)
class Slot:
    """One instruction in time (seconds)."""

    instruction: NkiInstruction
    lane: str
    start: float
    busy: float
    """How long it keeps its engine from issuing the next."""
    finish: float
    """When others may use the result."""
    waits_for: int | None = None
    """Position of the slot that determined the start."""
    num_bytes: int = 0
    flops: float = 0.0


@dataclass(slots=True)
class Timeline:
    """The modelled run of one program on one core."""

    program: Program
    slots: list[Slot] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def total_seconds(self) -> float:
        """From the first instruction to the last completion."""
        return max((slot.finish for slot in self.slots), default=0.0)

    def busy_seconds(self) -> dict[str, float]:
        """Issue time of each engine; for "dma" the time that the DMA engines move bytes."""
        busy = dict.fromkeys(_LANES, 0.0)
        for slot in self.slots:
            busy[slot.lane] += slot.busy
        return busy

    @property
    def dma_bytes(self) -> int:
        """Bytes that DMA moved."""
        return sum(slot.num_bytes for slot in self.slots if slot.lane == "dma")

    @property
    def flops(self) -> float:
        """Floating-point operations of matrix products."""
        return sum(slot.flops for slot in self.slots)

    def occupancy(self, memory: MemoryRegion) -> list[tuple[float, int]]:
        """Bytes per partition held in SBUF or PSUM over time, as (seconds, bytes) at each change.

        A tensor holds its bytes from the start of the first instruction that uses it to the end of
        the last, on all partitions whatever its height.
        """
        held: dict[int, tuple[float, float, int]] = {}
        for slot in self.slots:
            tensors = (*slot.instruction.outputs.values(), *slot.instruction.tensors_in())
            for storage in (tensor.storage for tensor in tensors):
                if storage.buffer is memory:
                    begin, end, _ = held.get(storage.index, (slot.start, slot.finish, 0))
                    held[storage.index] = (
                        min(begin, slot.start), max(end, slot.finish), storage.row_bytes
                    )  # fmt: skip
        changes: dict[float, int] = defaultdict(int)
        for begin, end, size in held.values():
            changes[begin] += size
            changes[end] -= size
        now = 0
        return [(when, now := now + changes[when]) for when in sorted(changes)]

    def stalls(self) -> dict[str, float]:
        """Time that each engine waited between its first and its last instruction, in seconds."""
        idle: dict[str, float] = {}
        last: dict[str, float] = {}
        for slot in self.slots:
            before = last.get(slot.lane, slot.start)
            idle[slot.lane] = idle.get(slot.lane, 0.0) + max(slot.start - before, 0.0)
            last[slot.lane] = slot.start + slot.busy
        return idle

    def critical_path(self) -> list[Slot]:
        """The chain of instructions that determines the total, first to last."""
        if not self.slots:
            return []
        at: int | None = max(range(len(self.slots)), key=lambda i: self.slots[i].finish)
        chain: list[Slot] = []
        while at is not None:
            chain.append(self.slots[at])
            at = self.slots[at].waits_for
        return chain[::-1]

    def report(self) -> str:
        """Total, shares and the lines on the critical path, as text."""
        total = self.total_seconds
        stalls = self.stalls()
        lines = [f"{self.program.name} on {self.program.chip.name}: {total * 1e6:.2f} us modelled"]
        for lane, seconds in self.busy_seconds().items():
            if seconds:
                share = 100 * seconds / total
                lines.append(
                    f"  {lane:7s} busy {seconds * 1e6:10.2f} us  {share:5.1f} %  "
                    f"waits {stalls[lane] * 1e6:10.2f} us"
                )
        lines.append(
            f"  DMA moved {self.dma_bytes / 1e6:.2f} MB, products {self.flops / 1e9:.2f} GFLOP"
        )
        for memory in (MemoryRegion.sbuf, MemoryRegion.psum):
            most = max((held for _, held in self.occupancy(memory)), default=0)
            lines.append(f"  {memory.value.upper()} at most {most} bytes per partition")
        by_line: dict[str, float] = defaultdict(float)
        chain = self.critical_path()
        for before, slot in zip([None, *chain], chain, strict=False):
            begin = before.finish if before is not None else 0.0
            name = f"{slot.instruction.opcode} line {slot.instruction.source.line}"
            by_line[name] += slot.finish - min(begin, slot.finish)
        lines.append("  critical path:")
        for name, seconds in sorted(by_line.items(), key=lambda item: -item[1])[:5]:
            lines.append(f"    {seconds * 1e6:10.2f} us  {name}")
        lines.extend(f"  note: {note}" for note in self.notes)
        return "\n".join(lines)

    def events(self) -> Iterator[Event]:
        """The timeline in the common trace schema."""
        for number, slot in enumerate(self.slots):
            source = slot.instruction.source
            yield Event(
                id=number,
                kind="dma" if slot.lane == "dma" else "instruction",
                name=slot.instruction.opcode,
                lane=slot.lane,
                start_ns=slot.start * 1e9,
                duration_ns=(slot.finish - slot.start) * 1e9,
                modelled=True,
                core=self.program.core,
                depends_on=() if slot.waits_for is None else (slot.waits_for,),
                flops=slot.flops,
                bytes=float(slot.num_bytes),
                python_file=source.path,
                python_line=source.line,
            )


def schedule(program: Program) -> Timeline:
    """Place every instruction of a program in time."""
    return _Scheduler(program).run()


class _Scheduler:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.chip = program.chip
        self.timeline = Timeline(program)
        self.free: dict[str, tuple[float, int | None]] = dict.fromkeys(_LANES, (0.0, None))
        self.writes: dict[int, list[tuple[Region, int]]] = defaultdict(list)
        self.reads: dict[int, list[tuple[Region, int]]] = defaultdict(list)
        self.ranges = live_ranges(program)
        self.memory = OnChipSpace(program)
        self.clock = 0

    def run(self) -> Timeline:
        self._block(self.program.body)
        return self.timeline

    def _block(self, block: Block) -> None:
        for item in block.items:
            if isinstance(item, NkiInstruction):
                self._place(item)
            elif isinstance(item, Loop):
                self._loop(item)
            elif isinstance(item, While):
                self._note(f"while loop in line {item.source.line} counted once")
                self._block(item.body)

    def _loop(self, loop: Loop) -> None:
        bounds = (loop.lower, loop.upper, loop.step)
        known = [bound for bound in bounds if isinstance(bound, int)]
        times = len(range(*known)) if len(known) == 3 else 1
        if len(known) < 3:
            self._note(f"loop in line {loop.source.line} has run-time bounds; counted once")
        for _ in range(times):
            self._block(loop.body)

    def _note(self, text: str) -> None:
        if text not in self.timeline.notes:
            self.timeline.notes.append(text)

    def _place(self, instruction: NkiInstruction) -> None:
        lane = instruction.engine.name if instruction.engine is not Engine.unknown else "sync"
        reads = [region(tensor) for tensor in instruction.tensors_in()]
        writes = [region(tensor) for tensor in instruction.outputs.values()]
        start, cause = self.free[lane]
        for when, number in self._dependencies(instruction, lane, reads, writes):
            if when > start:
                start, cause = when, number
        when, slot_of = self.memory.room(instruction, self.clock)
        if when > start:
            start, cause = when, slot_of
        slot = self._price(instruction, lane, start)
        slot.waits_for = cause
        number = len(self.timeline.slots)
        self.timeline.slots.append(slot)
        # The DMA engines take new transfers while earlier ones complete.
        self.free[lane] = (slot.start + slot.busy, number)
        self._record(reads, writes, number)
        self.memory.used(instruction, self.clock, slot.finish, number, self.ranges)
        self.clock += 1

    def _dependencies(
        self, instruction: NkiInstruction, lane: str, reads: list[Region], writes: list[Region]
    ) -> Iterator[tuple[float, int]]:
        slots = self.timeline.slots
        for wanted in reads:
            for place, number in self.writes[wanted.storage]:
                if place.overlaps(wanted):
                    yield slots[number].finish, number
        for wanted in writes:
            for place, number in (*self.writes[wanted.storage], *self.reads[wanted.storage]):
                if place.overlaps(wanted):
                    earlier = slots[number]
                    if earlier.lane == lane and lane != "dma":
                        continue  # one engine finishes in order
                    yield earlier.finish, number
        for producer in instruction.depends:
            for number in range(len(slots) - 1, -1, -1):
                if slots[number].instruction is producer:
                    yield slots[number].finish, number
                    break

    def _record(self, reads: list[Region], writes: list[Region], number: int) -> None:
        for wanted in writes:
            kept = [(p, n) for p, n in self.writes[wanted.storage] if not wanted.covers(p)]
            kept.append((wanted, number))
            self.writes[wanted.storage] = kept
            self.reads[wanted.storage] = [
                (p, n) for p, n in self.reads[wanted.storage] if not wanted.covers(p)
            ]
        for wanted in reads:
            lane = self.timeline.slots[number].lane
            kept = [
                (p, n)
                for p, n in self.reads[wanted.storage]
                if not (wanted.covers(p) and self.timeline.slots[n].lane == lane)
            ]
            kept.append((wanted, number))
            self.reads[wanted.storage] = kept

    def _price(self, instruction: NkiInstruction, lane: str, start: float) -> Slot:
        if lane == "dma" or instruction.opcode in ("sendrecv", "collective"):
            return _dma_slot(instruction, start, self.chip)
        if instruction.opcode in ("device_print", "rank_id") or lane == "sync":
            cost = 64 / (self.chip.scalar.clock_ghz * 1e9)
            return Slot(instruction, "sync", start, cost, start + cost)
        issue = describe(instruction, lane)
        seconds = issue_seconds(instruction.opcode, issue, self.chip)
        done = start + seconds + completion_seconds(issue, self.chip)
        return Slot(instruction, lane, start, seconds, done, flops=_flops(instruction))


def _flops(instruction: NkiInstruction) -> float:
    if instruction.opcode != "nc_matmul" or instruction.attributes["is_transpose"]:
        return 0.0
    left, right = instruction.inputs["stationary"], instruction.inputs["moving"]
    double = instruction.attributes["perf_mode"] is matmul_perf_mode.double_row
    pairs = left.free_elements * right.free_elements / (2 if double else 1)
    return float(2.0 * left.shape[0] * pairs)


_BASIS = {"nc_matmul": "moving", "nc_matmul_mx": "moving"}


def describe(instruction: NkiInstruction, lane: str) -> Issue:
    """The sizes that an instruction's cost depends on."""
    tensors = [value for value in instruction.inputs.values() if isinstance(value, NkiTensor)]
    tiles = [t for t in tensors if t.free_elements > 1] or tensors
    outputs = list(instruction.outputs.values())
    dst = outputs[0] if outputs else tiles[0]
    basis = instruction.inputs.get(_BASIS.get(instruction.opcode, ""), tiles[0] if tiles else dst)
    elements = basis.free_elements
    if instruction.attributes.get("perf_mode") is matmul_perf_mode.double_row:
        elements //= 2
    if instruction.opcode in ("iota", "memset"):
        elements = dst.free_elements
    value = instruction.inputs.get("value")
    ops = [instruction.attributes.get(name) for name in ("op", "op0", "op1")]
    stationary = instruction.inputs.get("stationary")
    return Issue(
        engine=lane,
        elements=elements,
        partitions=basis.shape[0],
        in_dtypes=tuple(t.dtype for t in tiles) or (dst.dtype,),
        out_dtype=dst.dtype,
        in_memories=tuple(t.buffer.value for t in tiles) or ("sbuf",),
        out_memory=dst.buffer.value,
        contiguous=all(t.is_contiguous() for t in (*tiles, dst)),
        op="_".join(op for op in ops if op),
        stationary_free=stationary.free_elements if isinstance(stationary, NkiTensor) else 128,
        reads_reduction="reduce_res" in instruction.outputs,
        value_is_zero=value == 0 if value is not None else False,
        dynamic_offset=any(t.is_indirect() for t in (*tiles, dst)),
        double_row=instruction.attributes.get("perf_mode") is matmul_perf_mode.double_row,
    )


def _dma_slot(instruction: NkiInstruction, start: float, chip: Chip) -> Slot:
    dst = next(iter(instruction.outputs.values()))
    tensors = [t for t in (dst, *instruction.tensors_in()) if t.size >= dst.size]
    num_bytes = max(t.size * t.itemsize for t in tensors)
    run = min(contiguous_bytes(t) for t in tensors)
    if instruction.opcode == "dma_transpose":
        run = max(run, 512)  # the transpose block moves rows; its rate is below
    descriptors = max(1.0, num_bytes / max(run, 1))
    dynamic = any(t.is_indirect() for t in tensors)
    each = descriptor_seconds(chip, num_bytes / descriptors)
    moving = descriptors * each / chip.dma.engines
    if instruction.opcode == "dma_transpose":
        moving /= chip.dma.transpose_hbm_efficiency or 1.0
    busy = max(moving, num_bytes / chip.dma.bytes_per_second)
    alone = transfer_seconds(
        chip, num_bytes=num_bytes, descriptor_bytes=run, partitions=dst.shape[0]
    )
    finish = start + max(busy, alone) + round_trip_seconds(chip, dynamic=dynamic)
    return Slot(instruction, "dma", start, busy, finish, num_bytes=num_bytes)

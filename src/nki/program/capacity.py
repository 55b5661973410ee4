"""Do the live tensors of a program fit, and do hand-placed ones collide?"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection
from typing import TYPE_CHECKING

from nki.errors import MemoryLimitError
from nki.program.reorder import late_ranges
from nki.program.storage import MemoryRegion, Storage

if TYPE_CHECKING:
    from nki.program.ir import Block, Finding, NkiInstruction, Program


def live_ranges(
    program: Program, from_allocation: Collection[int] = ()
) -> dict[int, tuple[int, int]]:
    """First and last instruction that uses each on-chip allocation, loops counted whole.

    Args:
        program: any.
        from_allocation: storages that are alive from where they are allocated, not from their
            first use, because their memory is prepared there.
    """
    from nki.program.ir import Loop, NkiInstruction, While

    ranges: dict[int, tuple[int, int]] = {}
    clock = 0

    def walk(block: Block, inside: dict[int, None] | None) -> None:
        nonlocal clock
        allocated: set[int] = set()
        for item in block.items:
            if isinstance(item, NkiInstruction):
                for index in _used(item):
                    first, _ = ranges.get(index, (clock, clock))
                    ranges[index] = (first, clock)
                    if inside is not None and index not in allocated:
                        inside[index] = None
                clock += 1
            elif isinstance(item, Loop | While):
                outer: dict[int, None] = {}
                begin = clock
                walk(item.body, outer)
                for index in outer:  # used in every iteration: alive for the whole loop
                    first, _ = ranges[index]
                    ranges[index] = (min(first, begin), clock)
                    if inside is not None and index not in allocated:
                        inside[index] = None
            else:
                index = item.storage.index
                allocated.add(index)
                if index in from_allocation:
                    ranges.setdefault(index, (clock, clock))

    walk(program.body, None)
    return ranges


def _used(instruction: NkiInstruction) -> list[int]:
    tensors = (*instruction.outputs.values(), *instruction.tensors_in())
    return [tensor.storage.index for tensor in tensors if tensor.storage.buffer.on_chip]


def peak_bytes(
    program: Program, region: MemoryRegion, ranges: dict[int, tuple[int, int]] | None = None
) -> tuple[float, list[Storage]]:
    """Most bytes per partition that are alive at once, and the tensors alive then.

    A tile of few partitions can share its bytes with others, quadrant by quadrant.

    Args:
        program: any.
        region: SBUF or PSUM.
        ranges: first and last use of each allocation, those of program order if None.
    """
    if ranges is None:
        ranges = live_ranges(program)
    events: list[tuple[int, int, Storage]] = []
    for storage in program.storages:
        if storage.buffer is region and storage.index in ranges:
            first, last = ranges[storage.index]
            events.append((first, 1, storage))
            events.append((last + 1, 0, storage))
    events.sort(key=lambda event: (event[0], event[1]))
    live: dict[int, Storage] = {}
    now = peak = 0.0
    at_peak: list[Storage] = []
    for _, begins, storage in events:
        weight = storage.row_bytes * (-(-storage.shape[0] // 32)) / 4
        if begins:
            live[storage.index] = storage
            now += weight
            if now > peak:
                peak, at_peak = now, list(live.values())
        else:
            del live[storage.index]
            now -= weight
    return peak, at_peak


def check_capacity(program: Program) -> list[Finding]:
    """PSUM that does not fit is an error; SBUF that does not fit would be spilled to HBM.

    A compiler may compute tensors later than the kernel says, so that order counts too.
    """
    from nki.program.ir import Finding

    findings = []
    for region, memory in (
        (MemoryRegion.psum, program.chip.psum),
        (MemoryRegion.sbuf, program.chip.sbuf),
    ):
        peak, live = peak_bytes(program, region)
        if peak > memory.bytes_per_partition:
            peak, live = peak_bytes(program, region, late_ranges(program))
        if peak <= memory.bytes_per_partition:
            continue
        largest = sorted(live, key=lambda storage: -storage.row_bytes)[:5]
        listing = ", ".join(f"{s.name} {s.row_bytes} (line {s.source.line})" for s in largest)
        message = (
            f"{len(live)} {region.value.upper()} tensors are alive at once and need "
            f"{peak:.0f} bytes per partition; {program.chip.name} has "
            f"{memory.bytes_per_partition}. Largest: {listing}. Use smaller tiles or free some "
            "by using them earlier."
        )
        if region is MemoryRegion.psum:
            raise MemoryLimitError(message, source=largest[0].source)
        findings.append(Finding("sbuf_capacity", message, largest[0].source))
    return findings


def check_overlap(program: Program) -> list[Finding]:
    """Hand-placed tensors that share bytes while both are alive."""
    from nki.program.ir import Finding

    placed = [s for s in program.storages if s.has_address and s.buffer.on_chip]
    if not placed:
        return []
    ranges = live_ranges(program)
    findings: list[Finding] = []
    active: list[tuple[int, int]] = []  # (last use, storage index), sorted
    by_index = {storage.index: storage for storage in placed}
    order = sorted((ranges[s.index][0], s.index) for s in placed if s.index in ranges)
    for first, index in order:
        while active and active[0][0] < first:
            active.pop(0)
        storage = by_index[index]
        for _, other_index in active:
            other = by_index[other_index]
            if _collide(storage, other):
                findings.append(
                    Finding(
                        "address_overlap",
                        f"{storage.name} at {storage.address} and {other.name} at {other.address} "
                        f"(line {other.source.line}) share {storage.buffer.value.upper()} bytes "
                        "while both are in use. Place one elsewhere.",
                        storage.source,
                    )
                )
        insort(active, (ranges[index][1], index))
    return findings


def _collide(first: Storage, second: Storage) -> bool:
    if first.buffer is not second.buffer:
        return False
    assert first.address is not None
    assert second.address is not None
    (p1, b1), (p2, b2) = first.address, second.address
    return (
        p1 < p2 + second.shape[0]
        and p2 < p1 + first.shape[0]
        and b1 < b2 + second.row_bytes
        and b2 < b1 + first.row_bytes
    )

"""nki.lint: where a kernel wastes time on the chip, by source line, with what to write instead.

The rules are those of AWS's performance guides, the limits and costs those of the chip's rows.
Nothing is executed. A finding's seconds are engine or DMA time, which may be hidden behind others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuron_chip import Chip
from nki.errors import SourceLine
from nki.program.enums import Engine
from nki.program.ir import NkiInstruction
from nki.simulator.footprint import Region, contiguous_bytes, region
from nki.simulator.timeline import Slot, Timeline

_COMPUTE = ("vector", "scalar", "gpsimd")


@dataclass(slots=True)
class Advice:
    """One performance mistake on one line."""

    rule: str
    source: SourceLine
    message: str
    """What happens, with values, and the remedy."""
    count: int = 0
    """Instructions of the line that do it."""
    seconds: float = 0.0
    """Time that the remedy can save at most."""

    def __str__(self) -> str:
        where = f"{Path(self.source.path).name}:{self.source.line}"
        return f"{where}: {self.message} [{self.rule}, {self.count} x, {self.seconds * 1e6:.1f} us]"


@dataclass(slots=True)
class _Seen:
    """What rules remember from one instruction to the next."""

    chip: Chip
    loads: dict[Region, int] = field(default_factory=lambda: defaultdict(int))


Found = tuple[str, float, str]
Rule = Callable[[Slot, NkiInstruction, _Seen], Found | None]


def short_descriptors(slot: Slot, item: NkiInstruction, seen: _Seen) -> Found | None:
    """DMA in runs much shorter than what fills a DMA engine."""
    if slot.lane != "dma" or not item.outputs or item.opcode == "dma_transpose":
        return None
    chip = seen.chip
    dst = next(iter(item.outputs.values()))
    moved = [tensor for tensor in (dst, *item.tensors_in()) if tensor.size > 1]
    run = min((contiguous_bytes(tensor) for tensor in moved), default=slot.num_bytes)
    wanted = chip.dma.full_rate_descriptor_bytes
    if 8 * run > wanted or slot.num_bytes <= wanted:
        return None
    ideal = slot.num_bytes / chip.dma.bytes_per_second
    return (
        "short DMA",
        max(slot.busy - ideal, 0.0),
        f"DMA moves {slot.num_bytes} bytes in runs of {run}; engines reach their rate with runs of "
        f"about {wanted}. Make the last dimension longer, or load a wider block at once.",
    )


def tiny_transfers(slot: Slot, item: NkiInstruction, _: _Seen) -> Found | None:
    """DMA whose fixed time is more than its bytes."""
    if slot.lane != "dma" or not item.outputs:
        return None
    fixed = (slot.finish - slot.start) - slot.busy
    if slot.busy * 10 > fixed:
        return None
    return (
        "small DMA",
        fixed,
        f"a DMA of {slot.num_bytes} bytes takes {1e6 * (fixed + slot.busy):.1f} us, "
        f"{1e6 * fixed:.1f} of them start and completion. Move several tiles with one dma_copy.",
    )


def repeated_loads(slot: Slot, item: NkiInstruction, seen: _Seen) -> Found | None:
    """The same HBM bytes loaded again."""
    if item.opcode not in ("dma_copy", "dma_transpose") or not item.outputs["dst"].on_chip:
        return None
    source = item.inputs["src"]
    if source.on_chip or source.is_indirect() or source.storage.argument is None:
        return None
    place = region(source)
    seen.loads[place] += 1
    if seen.loads[place] == 1:
        return None
    return (
        "repeated load",
        slot.busy,
        f"{slot.num_bytes} bytes of {source.storage.name} are loaded that an earlier DMA already "
        "brought in. Hoist the load out of the loop, or block the loop so that the tile is used "
        "while it is in SBUF.",
    )


def fp32_products(slot: Slot, item: NkiInstruction, seen: _Seen) -> Found | None:
    """Products of fp32 operands."""
    passes = seen.chip.tensor.fp32_passes
    if item.opcode != "nc_matmul" or item.attributes["is_transpose"] or passes == 1:
        return None
    if item.inputs["moving"].dtype != "float32":
        return None
    return (
        "fp32 matmul",
        slot.busy * (1 - 1 / passes),
        f"the tensor engine takes {passes} passes for fp32 operands. Cast them to bfloat16 "
        "(PSUM still accumulates in fp32).",
    )


def small_products(slot: Slot, item: NkiInstruction, seen: _Seen) -> Found | None:
    """Products that leave rows or columns of the array idle."""
    if item.opcode != "nc_matmul" or item.attributes["is_transpose"]:
        return None
    engine = seen.chip.tensor
    rows, columns = item.inputs["stationary"].shape[0], item.inputs["stationary"].free_elements
    moving = item.inputs["moving"].free_elements
    used = rows * columns / (engine.rows * engine.columns)
    if used > 0.5 and moving >= engine.min_issue_cycles:
        return None
    return (
        "small matmul",
        slot.busy * (1 - min(used, moving / engine.min_issue_cycles, 1.0)),
        f"a product with {rows} x {columns} stationary and {moving} moving columns fills "
        f"{100 * used:.0f} % of the {engine.rows} x {engine.columns} array. Batch tiles to "
        f"{engine.rows} rows and up to {engine.max_moving_free} moving columns.",
    )


def few_partitions(slot: Slot, item: NkiInstruction, seen: _Seen) -> Found | None:
    """Element-wise work on few of the lanes."""
    if slot.lane not in _COMPUTE or not item.outputs:
        return None
    dst = next(iter(item.outputs.values()))
    lanes = seen.chip.vector.lanes
    inputs = [tensor for tensor in item.tensors_in() if tensor.on_chip]
    partitions = max(tensor.shape[0] for tensor in (dst, *inputs))
    if 4 * partitions > lanes or dst.free_elements <= seen.chip.vector.min_issue_cycles:
        return None
    return (
        "few partitions",
        slot.busy * (1 - partitions / lanes),
        f"{item.opcode} works on {partitions} of {lanes} partitions, {dst.free_elements} elements "
        "each. Lay the data out over more partitions.",
    )


def short_instructions(slot: Slot, item: NkiInstruction, seen: _Seen) -> Found | None:
    """Instructions so short that their fixed time dominates."""
    if slot.lane not in _COMPUTE or not item.outputs:
        return None
    least = seen.chip.vector.min_issue_cycles
    sizes = [tensor.free_elements for tensor in (*item.outputs.values(), *item.tensors_in())]
    longest = max(sizes)
    if 1 < longest < least:
        return (
            "short instruction",
            slot.busy * (1 - longest / least),
            f"{item.opcode} has {longest} elements per partition and costs like {least}. Work on "
            "a longer free dimension.",
        )
    return None


def slow_reciprocal(slot: Slot, item: NkiInstruction, seen: _Seen) -> Found | None:
    """Long reciprocals on the vector engine."""
    if item.opcode != "reciprocal" or item.engine is not Engine.vector:
        return None
    elements = item.outputs["dst"].free_elements
    if elements <= seen.chip.vector.min_issue_cycles:
        return None
    quick = elements / (seen.chip.scalar.clock_ghz * 1e9)
    return (
        "slow reciprocal",
        max(slot.busy - quick, 0.0),
        f"nisa.reciprocal of {elements} elements per partition takes {1e6 * slot.busy:.1f} us on "
        f"the vector engine; nisa.activation(op=nl.reciprocal) takes {1e6 * quick:.1f} us.",
    )


RULES: tuple[Rule, ...] = (
    short_descriptors,
    tiny_transfers,
    repeated_loads,
    fp32_products,
    small_products,
    few_partitions,
    short_instructions,
    slow_reciprocal,
)


def _idle_neighbour(timeline: Timeline) -> Iterator[Advice]:
    """Copies on a busy engine while another that could do them is idle."""
    busy = timeline.busy_seconds()
    if not timeline.slots or busy["vector"] < 0.5 * timeline.total_seconds:
        return
    if busy["scalar"] > 0.25 * busy["vector"]:
        return
    movable = [
        slot
        for slot in timeline.slots
        if slot.lane == "vector" and slot.instruction.opcode == "tensor_copy"
    ]
    if movable:
        seconds = sum(slot.busy for slot in movable)
        yield Advice(
            "idle engine",
            movable[0].instruction.source,
            f"the vector engine is busy {100 * busy['vector'] / timeline.total_seconds:.0f} % of "
            f"the time and the scalar engine {100 * busy['scalar'] / timeline.total_seconds:.0f} "
            "%. Give copies engine=nisa.engine.scalar.",
            len(movable),
            seconds / 2,
        )


def find_advice(timeline: Timeline) -> list[Advice]:
    """What to change, the largest possible saving first."""
    found: dict[tuple[str, SourceLine], Advice] = {}
    seen = _Seen(timeline.program.chip)
    for slot in timeline.slots:
        for rule in RULES:
            result = rule(slot, slot.instruction, seen)
            if result is None:
                continue
            name, seconds, message = result
            source = slot.instruction.source
            entry = found.setdefault((name, source), Advice(name, source, message))
            entry.count += 1
            entry.seconds += seconds
    listed = [*found.values(), *_idle_neighbour(timeline)]
    return sorted(listed, key=lambda entry: -entry.seconds)


def lint(kernel: Any) -> Callable[..., list[Advice]]:
    """lint(kernel)(*args): the performance mistakes of a kernel for arguments of these shapes."""
    from nki.benchmark import profile

    priced = profile(kernel)

    def run(*args: Any, **kwargs: Any) -> list[Advice]:
        return find_advice(priced(*args, **kwargs))

    return run

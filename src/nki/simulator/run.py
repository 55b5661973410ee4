"""Run programs: instruction by instruction on each core, cores in lockstep where they meet."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from nki.errors import DeadlockError, NkiError
from nki.program.ir import Allocation, Block, Loop, NkiInstruction, Program, While
from nki.program.storage import MemoryRegion
from nki.simulator.exchange import MEETING, can_meet, exchange
from nki.simulator.memory import Machine
from nki.simulator.semantics import SEMANTICS

# An instruction at which cores meet; None where the next core may go on.
Steps = Generator[NkiInstruction | None, None, None]


def execute(machine: Machine, instruction: NkiInstruction) -> None:
    """Run one instruction that does not involve other cores."""
    try:
        SEMANTICS[instruction.opcode](machine, instruction)
    except NkiError:
        raise
    except Exception as error:
        error.add_note(f"in nisa.{instruction.opcode} at {instruction.source}: {instruction!r}")
        raise


def prepare(machine: Machine, program: Program) -> None:
    """Allocate what exists before the first instruction: arguments and constants."""
    for storage in program.storages:
        if storage.argument is not None or storage.constant is not None:
            machine.allocate(storage)


def steps(machine: Machine, block: Block) -> Steps:
    """Run a block; pause at each instruction where cores meet."""
    for item in block.items:
        if isinstance(item, NkiInstruction):
            if item.opcode in MEETING:
                yield item
            else:
                execute(machine, item)
                if gives_way(machine.num_cores, item):
                    yield None
        elif isinstance(item, Allocation):
            machine.allocate(item.storage)
            if item.storage.buffer is MemoryRegion.psum and _decided_while_running(item, block):
                machine.product_mask_for(item.storage)
        elif isinstance(item, Loop):
            lower, upper, step = (machine.value(v) for v in (item.lower, item.upper, item.step))
            for value in range(int(lower), int(upper), int(step)):
                machine.set_register(item.counter, value)
                yield from steps(machine, item.body)
        elif isinstance(item, While):
            while machine.value(item.condition) != 0:
                yield from steps(machine, item.body)


def gives_way(num_cores: int, instruction: NkiInstruction) -> bool:
    """Whether the other cores go on here: cores run side by side and share what this one wrote.

    Kernels may not depend on it (core_barrier orders cores), but many that both cores begin by
    clearing a whole shared tensor get away with it on the chip, and so they do here.
    """
    return num_cores > 1 and any(
        tensor.storage.buffer is MemoryRegion.shared_hbm for tensor in instruction.outputs.values()
    )


def _decided_while_running(allocation: Allocation, block: Block) -> bool:
    """Does a product into this tensor leave open whether it accumulates?"""
    storage = allocation.storage

    def search(items: Block) -> bool:
        for item in items.items:
            if isinstance(item, NkiInstruction):
                if (
                    item.opcode in ("nc_matmul", "nc_matmul_mx")
                    and item.outputs["dst"].storage is storage
                    and item.attributes["accumulate"] is None
                ):
                    return True
            elif isinstance(item, Loop | While) and search(item.body):
                return True
        return False

    return any(isinstance(item, Loop | While) and search(item.body) for item in block.items)


def run(programs: Sequence[Program], machines: Sequence[Machine]) -> None:
    """Run one program on each machine until all end, with NumPy."""
    for program, machine in zip(programs, machines, strict=True):
        prepare(machine, program)
        machine.grow_registers(program.num_registers)
    run_together(
        [steps(m, program.body) for program, m in zip(programs, machines, strict=True)], machines
    )


def run_together(cores: Sequence[Steps], machines: Sequence[Machine]) -> None:
    """Advance all cores, letting them exchange data where they meet."""
    running = dict(enumerate(cores))
    waiting: dict[int, NkiInstruction] = {}
    while running:
        more_to_do = False
        for core in list(running):
            if core in waiting:
                continue
            try:
                reached = next(running[core])
            except StopIteration:
                del running[core]
                continue
            if reached is None:
                more_to_do = True
            else:
                waiting[core] = reached
        if not running:
            return
        if more_to_do:
            continue
        ready = can_meet(waiting, len(machines))
        if not ready:
            raise _deadlock(waiting, len(machines))
        exchange({core: (machines[core], waiting[core]) for core in ready})
        for core in ready:
            del waiting[core]


def _deadlock(waiting: dict[int, NkiInstruction], num_cores: int) -> DeadlockError:
    places = "; ".join(
        f"core {core} waits in nisa.{item.opcode} at {item.source}"
        for core, item in sorted(waiting.items())
    )
    ended = [str(core) for core in range(num_cores) if core not in waiting]
    tail = f"; core {', '.join(ended)} has ended" if ended else ""
    first = next(iter(waiting.values()))
    return DeadlockError(
        f"The cores wait for one another: {places}{tail}. All cores must reach the same barriers "
        "and matching sendrecv calls.",
        source=first.source,
    )

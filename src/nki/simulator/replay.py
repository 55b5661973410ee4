"""Replay of a specialised kernel: what can be decided once was decided in `plan`."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from nki.errors import DeviceTrapError
from nki.program.enums import Engine
from nki.program.ir import Loop, NkiInstruction, Program
from nki.simulator import native
from nki.simulator.exchange import MEETING
from nki.simulator.memory import Bytes, Machine, fresh_bytes
from nki.simulator.plan import Fresh, Plan, Step, Stretch, plan
from nki.simulator.run import Steps, execute, gives_way, prepare, run, run_together
from nki.simulator.threads import Team, num_threads


class Replay:
    """The programs of one specialisation, ready to run again and again."""

    def __init__(self, programs: Sequence[Program]) -> None:
        self.programs = list(programs)
        self._plans: list[Plan] | None = None
        self._arenas: list[list[Bytes]] = []
        self._teams: list[Team] = []
        self._written = frozenset(
            tensor.storage.argument
            for program in self.programs
            for item in program.instructions()
            for tensor in item.outputs.values()
            if tensor.storage.argument is not None
        )

    def run(self, machines: Sequence[Machine]) -> None:
        """Execute on fresh machines whose arguments are bound."""
        if not native.available():
            run(self.programs, machines)
            return
        if self._plans is None:
            self._plans = [plan(program) for program in self.programs]
        if len(machines) == 1 and self._in_threads(self._plans[0], machines[0]):
            return
        arenas = (
            self._arenas.pop()
            if self._arenas
            else [np.empty(item.arena_bytes + 64, np.uint8) for item in self._plans]
        )
        cores = [
            _Core(item, machine, memory)
            for item, machine, memory in zip(self._plans, machines, arenas, strict=True)
        ]
        run_together([core.steps(core.plan.steps) for core in cores], machines)
        self._arenas.append(arenas)

    def _in_threads(self, item: Plan, machine: Machine) -> bool:
        """Run with several threads, if the program and the arguments allow it."""
        if item.parallel is None or num_threads() < 2 or _aliased(self._written, machine):
            return False
        assert item.parallel_code is not None
        program = item.program
        prepare(machine, program)
        machine.grow_registers(program.num_registers)
        for step in item.steps:
            if isinstance(step, Fresh):
                machine.allocate(step.storage)
        bases = np.zeros(max(len(program.storages), 1), np.uint64)
        for index, memory in machine.memory.items():
            bases[index] = memory.ctypes.data
        team = self._teams.pop() if self._teams else Team(item.parallel)
        team.run(item.parallel_code, item.parallel_sources, bases, machine.registers)
        self._teams.append(team)
        return True


def _aliased(written: frozenset[str], machine: Machine) -> bool:
    """Whether memory of an argument that the kernel writes belongs to another argument too."""
    return any(
        np.may_share_memory(machine.arguments[path], memory)
        for path in written
        for other, memory in machine.arguments.items()
        if other != path
    )


class _Core:
    """One core's plan bound to a machine and its memory."""

    def __init__(self, item: Plan, machine: Machine, arena: Bytes) -> None:
        self.plan = item
        self.machine = machine
        program = item.program
        prepare(machine, program)
        machine.grow_registers(program.num_registers)
        skip = -arena.ctypes.data % 64
        for storage in program.storages:
            at = item.offsets.get(storage.index)
            if at is not None and storage.index not in machine.memory:
                begin = skip + at
                machine.memory[storage.index] = arena[begin : begin + storage.num_bytes]
        self._bases = (ctypes.c_void_p * max(len(program.storages), 1))()
        for storage in program.storages:
            self._point(storage.index)
        self._core: Any = native.library()
        self._sgemm = native.sgemm()

    def _point(self, index: int) -> None:
        memory = self.machine.memory.get(index)
        if memory is not None:
            self._bases[index] = memory.ctypes.data

    def steps(self, items: Sequence[Step]) -> Steps:
        """Run; pause at each instruction where cores meet."""
        machine = self.machine
        for item in items:
            if isinstance(item, Stretch):
                self._native(item)
                if item.gives_way:
                    yield None
            elif isinstance(item, NkiInstruction):
                if item.opcode in MEETING:
                    yield item
                else:
                    execute(machine, item)
                    if gives_way(machine.num_cores, item):
                        yield None
            elif isinstance(item, Fresh):
                self._fresh(item)
            elif isinstance(item.loop, Loop):
                loop = item.loop
                bounds = [int(machine.value(v)) for v in (loop.lower, loop.upper, loop.step)]
                for value in range(*bounds):
                    machine.set_register(loop.counter, value)
                    yield from self.steps(item.body)
            else:
                while machine.value(item.loop.condition) != 0:
                    yield from self.steps(item.body)

    def _fresh(self, item: Fresh) -> None:
        storage = item.storage
        memory = self.machine.memory.get(storage.index)
        if memory is None or not storage.buffer.on_chip:
            self.machine.allocate(storage)
            self._point(storage.index)
            return
        memory[:] = fresh_bytes(storage)
        self.machine.products.pop(storage.index, None)
        self.machine.product_mask_for(storage)

    def _native(self, stretch: Stretch) -> None:
        machine = self.machine
        code = self.plan.code
        end = self._core.neuron_nki_run(
            code.ctypes.data,
            stretch.begin,
            stretch.end,
            ctypes.addressof(self._bases),
            machine.registers.ctypes.data,
            machine.accumulators[Engine.vector].ctypes.data,
            machine.accumulators[Engine.scalar].ctypes.data,
            self._sgemm,
        )
        if end != stretch.end:
            self._trap(self.plan.sources[end])

    def _trap(self, instruction: NkiInstruction) -> None:
        execute(self.machine, instruction)  # the same access in NumPy names the index
        raise DeviceTrapError(
            f"nisa.{instruction.opcode}: a run-time index is out of bounds.",
            source=instruction.source,
        )

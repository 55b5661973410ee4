"""Step mode: the kernel runs as Python and each instruction executes when it is issued.

breakpoint() works, and registers have values. Cores take turns; each runs in its own thread.
"""

from __future__ import annotations

import threading
from typing import Any

from neuron_chip import Chip
from nki.errors import DeadlockError
from nki.program import builder as building
from nki.program.ir import NkiInstruction
from nki.program.registers import NkiScalar
from nki.program.storage import Storage
from nki.simulator.exchange import MEETING, can_meet, exchange
from nki.simulator.memory import Machine, SharedMemory
from nki.simulator.run import execute, gives_way
from nki.specialize import Call, check_result, run_function


class Meeting:
    """Lets one core run at a time and passes the turn when it must wait for others."""

    def __init__(self, num_cores: int) -> None:
        self._condition = threading.Condition()
        self._turn = 0
        self._waiting: dict[int, NkiInstruction] = {}
        self._running = set(range(num_cores))
        self._num_cores = num_cores
        self._failed: BaseException | None = None
        self.machines: dict[int, Machine] = {}

    def begin(self, core: int) -> None:
        """Wait for the first turn."""
        with self._condition:
            self._condition.wait_for(lambda: self._turn == core or self._failed is not None)

    def give_way(self, core: int) -> None:
        """Let the other cores go on, then continue."""
        with self._condition:
            free = sorted(self._running - set(self._waiting))
            after = [other for other in free if other > core]
            self._turn = (after or free)[0]
            self._condition.notify_all()
            self._condition.wait_for(lambda: self._turn == core or self._failed is not None)

    def end(self, core: int, error: BaseException | None = None) -> None:
        """This core has finished."""
        with self._condition:
            self._running.discard(core)
            if error is not None and self._failed is None:
                self._failed = error
            self._pass_on()

    def wait(self, core: int, instruction: NkiInstruction) -> None:
        """Block until the instruction's partners have arrived and the exchange is done."""
        with self._condition:
            self._waiting[core] = instruction
            ready = can_meet(self._waiting, self._num_cores)
            if ready:
                exchange({item: (self.machines[item], self._waiting[item]) for item in ready})
                for item in ready:
                    del self._waiting[item]
            self._pass_on()
            self._condition.wait_for(
                lambda: self._failed is not None
                or (self._turn == core and core not in self._waiting)
            )
            if self._failed is not None:
                raise DeadlockError(
                    f"Another core stopped: {self._failed}", source=instruction.source
                )

    def _pass_on(self) -> None:
        free = sorted(self._running - set(self._waiting))
        if free:
            self._turn = free[0]
        elif self._waiting and self._failed is None:
            first = next(iter(self._waiting.values()))
            self._failed = DeadlockError(
                f"Cores {sorted(self._waiting)} wait in nisa.{first.opcode} and no core can go on.",
                source=first.source,
            )
        self._condition.notify_all()


class Stepper:
    """Executes instructions on a machine as the builder reports them."""

    def __init__(self, machine: Machine, meeting: Meeting) -> None:
        self.machine = machine
        self.meeting = meeting

    def allocated(self, storage: Storage) -> None:
        """Give new tensors their memory."""
        self.machine.allocate(storage)

    def executed(self, instruction: NkiInstruction) -> None:
        """Run the instruction now."""
        if instruction.opcode in MEETING:
            self.meeting.wait(self.machine.core, instruction)
        else:
            execute(self.machine, instruction)
            if gives_way(self.machine.num_cores, instruction):
                self.meeting.give_way(self.machine.core)

    def register_value(self, register: NkiScalar) -> int:
        """The register's value now."""
        return int(self.machine.value(register))

    def set_register(self, register: NkiScalar, value: int) -> None:
        """Give a loop counter its value."""
        self.machine.set_register(register, value)


def run_in_steps(
    call: Call,
    *,
    chip: Chip,
    grid: tuple[int, ...],
    num_cores: int,
    arguments: dict[str, Any],
    strict: bool,
) -> tuple[Machine, Any]:
    """Run the kernel as Python on every core; return core 0's machine and result."""
    shared = SharedMemory()
    meeting = Meeting(num_cores)
    results: dict[int, Any] = {}
    errors: dict[int, BaseException] = {}
    machines = [
        Machine(core=core, num_cores=num_cores, shared=shared, arguments=arguments)
        for core in range(num_cores)
    ]
    meeting.machines = dict(enumerate(machines))

    def run_core(core: int) -> None:
        builder = building.Builder(
            call.function.__name__,
            chip=chip,
            core=core,
            num_cores=num_cores,
            grid=grid,
            strict=strict,
            observer=Stepper(machines[core], meeting),
        )
        meeting.begin(core)
        try:
            results[core] = run_function(builder, call)
            check_result(results[core])
        except BaseException as error:  # noqa: BLE001 (raised again by the caller)
            errors[core] = error
            meeting.end(core, error)
            return
        meeting.end(core)

    if num_cores == 1:
        run_core(0)  # in the caller's thread, so that breakpoint() works
    else:
        threads = [threading.Thread(target=run_core, args=(core,)) for core in range(num_cores)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    primary = [e for e in errors.values() if not str(e).startswith("Another core stopped")]
    if primary or errors:
        raise primary[0] if primary else next(iter(errors.values()))
    return machines[0], results[0]

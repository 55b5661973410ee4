"""Builder: records what a running kernel function asks for. One is current per thread."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from neuron_chip import Chip
from nki.errors import NkiError, TraceError, kernel_line
from nki.program.enums import Engine, nc_version
from nki.program.ir import Allocation, Block, Finding, Loop, NkiInstruction, Program, While
from nki.program.registers import NkiScalar
from nki.program.storage import MemoryRegion, Storage
from nki.program.tensor import NkiTensor
from nki.program.verify import Verifier

__all__ = ["Builder", "Observer", "current", "use"]


class Observer(Protocol):
    """Runs the program while it is being recorded (step mode)."""

    def allocated(self, storage: Storage) -> None:
        """A tensor came into being."""

    def executed(self, instruction: NkiInstruction) -> None:
        """An instruction was issued."""

    def register_value(self, register: NkiScalar) -> int:
        """The register's value now."""

    def set_register(self, register: NkiScalar, value: int) -> None:
        """Give a register a value."""


class Builder:
    """State of one kernel run on one core."""

    def __init__(
        self,
        name: str,
        *,
        chip: Chip,
        core: int = 0,
        num_cores: int = 1,
        grid: tuple[int, ...] = (),
        strict: bool = False,
        observer: Observer | None = None,
    ) -> None:
        self.chip = chip
        self.generation = nc_version(chip.generation)
        self.core = core
        self.grid = grid
        self.strict = strict
        self.observer = observer
        self.body = Block()
        self.program = Program(
            name=name,
            chip=chip,
            core=core,
            num_cores=num_cores,
            body=self.body,
            storages=[],
            num_registers=0,
            arguments={},
        )
        self.verifier = Verifier(chip, strict=strict)
        self.caches: dict[Any, Any] = {}
        """Kernel-wide values that are made once, such as identity matrices."""
        self._block = self.body
        self._loops: list[object] = []

    @property
    def in_loop(self) -> bool:
        """True while the body of a device loop is recorded."""
        return bool(self._loops)

    # Allocation

    def allocate(
        self,
        shape: tuple[int, ...],
        dtype: str,
        buffer: MemoryRegion,
        *,
        name: str = "",
        address: tuple[int, int] | None = None,
        constant: Any = None,
        argument: str | None = None,
    ) -> NkiTensor:
        """A new tensor with undefined contents (or those of `constant`)."""
        index = len(self.program.storages)
        storage = Storage(
            index=index,
            name=name or f"{buffer.value}{index}",
            buffer=buffer,
            shape=shape,
            dtype=dtype,
            source=kernel_line(2),
            address=address,
            constant=constant,
            argument=argument,
        )
        self.verifier.allocate(storage)
        self.program.storages.append(storage)
        if argument is not None:
            self.program.arguments[argument] = storage
        elif constant is None:
            self._block.items.append(Allocation(storage))
        if self.observer is not None:
            self.observer.allocated(storage)
        return NkiTensor(shape, dtype, storage, buffer, name)

    # Instructions

    def emit(
        self,
        opcode: str,
        engine: Engine,
        outputs: dict[str, NkiTensor],
        inputs: dict[str, Any],
        attributes: dict[str, Any] | None = None,
        *,
        name: str | None = None,
    ) -> NkiInstruction:
        """Record one instruction, after checking it against the hardware's rules."""
        instruction = NkiInstruction(
            opcode,
            engine,
            outputs,
            inputs,
            attributes if attributes is not None else {},
            kernel_line(2),
            name=name,
            index=self.program.num_instructions,
        )
        instruction.scope = self._loops[-1] if self._loops else None
        self.verifier.check(instruction, in_loop=bool(self._loops))
        self.program.num_instructions += 1
        self._block.items.append(instruction)
        if self.observer is not None:
            self.observer.executed(instruction)
        return instruction

    def warn(self, rule: str, message: str) -> None:
        """Note a finding; in strict mode it is an error."""
        if self.strict:
            raise NkiError(message)
        self.program.findings.append(Finding(rule, message, kernel_line(2)))

    # Registers

    def new_register(self, *, dtype: str = "int32") -> NkiScalar:
        """A fresh register."""
        register = NkiScalar(self, self.program.num_registers, dtype=dtype)
        self.program.num_registers += 1
        return register

    def register_value(self, register: NkiScalar) -> int | None:
        """The value in step mode, None while tracing."""
        return None if self.observer is None else self.observer.register_value(register)

    def register_operation(self, operator: str, left: Any, right: Any) -> NkiScalar:
        """Emit register arithmetic."""
        for value in (left, right):
            if not isinstance(value, int | NkiScalar):
                raise TraceError(
                    f"Register arithmetic ({operator}) takes ints and registers, "
                    f"not {value!r} ({type(value).__name__})."
                )
        dtypes = {value.dtype for value in (left, right) if isinstance(value, NkiScalar)}
        dtype = "int64" if "int64" in dtypes else "int32"
        result = self.new_register(dtype=dtype)
        self.emit(
            "register_operation",
            Engine.sync,
            {},
            {"left": left, "right": right},
            {"operator": operator, "register": result},
        )
        return result

    # Loops

    def loop(self, lower: Any, upper: Any, step: Any, body: Callable[[NkiScalar], object]) -> None:
        """Record (or run) a counted device loop."""
        for counter in self.loop_range(lower, upper, step):
            body(counter)

    def loop_range(self, lower: Any, upper: Any, step: Any) -> Iterator[NkiScalar]:
        """The loop as a generator: one pass while tracing, every pass in step mode."""
        for bound in (lower, upper, step):
            if not isinstance(bound, int | NkiScalar):
                raise TraceError(
                    f"A device loop's bounds are ints or registers, not {bound!r}. "
                    "Load the value with nisa.register_load."
                )
        counter = self.new_register()
        loop = Loop(counter, lower, upper, step, Block(), kernel_line(2))
        self._block.items.append(loop)
        if self.observer is not None:
            values = range(*(int(bound) for bound in (lower, upper, step)))
            for value in values:
                self.observer.set_register(counter, value)
                yield counter
            return
        with self._nested(loop, loop.body):
            yield counter

    def while_loop(self, init: NkiScalar, body: Callable[[NkiScalar], NkiScalar]) -> None:
        """Record (or run) a device loop that ends when its register is 0."""
        condition = self.new_register(dtype=init.dtype)
        self._move(condition, init)
        loop = While(condition, Block(), kernel_line(2))
        self._block.items.append(loop)
        if self.observer is not None:
            while self.observer.register_value(condition) != 0:
                self._move(condition, body(condition))
            return
        with self._nested(loop, loop.body):
            self._move(condition, body(condition))

    def _move(self, target: NkiScalar, value: Any) -> None:
        if not isinstance(value, int | NkiScalar):
            raise TraceError(f"A loop body must return the next register, not {value!r}.")
        self.emit("register_move", Engine.sync, {}, {"src": value}, {"register": target})

    @contextmanager
    def _nested(self, loop: object, block: Block) -> Iterator[None]:
        outer, self._block = self._block, block
        self._loops.append(loop)
        self.verifier.scope = loop
        try:
            yield
        finally:
            self._block = outer
            self._loops.pop()
            self.verifier.scope = self._loops[-1] if self._loops else None

    def finish(self, result: Any) -> Program:
        """The complete program."""
        self.verifier.finish(self.program)
        self.program.result = result
        self.program.findings.extend(self.verifier.findings)
        if self.strict and self.program.findings:
            first = self.program.findings[0]
            raise NkiError(first.message, source=first.source)
        return self.program


_current: contextvars.ContextVar[Builder | None] = contextvars.ContextVar("nki", default=None)


def current() -> Builder:
    """The builder of the kernel that is running."""
    builder = _current.get()
    if builder is None:
        raise NkiError(
            "nl and nisa functions work only inside a kernel. Decorate the function with "
            "@nki.jit and call it, or use nki.simulate(function)(...)."
        )
    return builder


def current_or_none() -> Builder | None:
    """The builder of the kernel that is running, if there is one."""
    return _current.get()


@contextmanager
def use(builder: Builder) -> Iterator[Builder]:
    """Make a builder current."""
    token = _current.set(builder)
    try:
        yield builder
    finally:
        _current.reset(token)

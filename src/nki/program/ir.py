"""Program: instructions and loops in order, with their operands and source lines. Data only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from neuron_chip import Chip
from nki.errors import SourceLine
from nki.program.enums import engine
from nki.program.nki_object import NkiObject
from nki.program.registers import NkiScalar
from nki.program.storage import Storage
from nki.program.tensor import NkiTensor


class NkiInstruction(NkiObject):
    """One instruction: what it does, to which operands, on which engine."""

    __slots__ = ("_reads", "attributes", "depends", "engine", "index", "inputs", "name", "opcode",
                 "outputs", "scope", "source")  # fmt: skip

    def __init__(
        self,
        opcode: str,
        engine: engine,
        outputs: dict[str, NkiTensor],
        inputs: dict[str, Any],
        attributes: dict[str, Any],
        source: SourceLine,
        *,
        name: str | None = None,
        index: int = -1,
    ) -> None:
        self.opcode = opcode
        self.engine = engine
        self.outputs = outputs
        self.inputs = inputs
        """Tensors, numbers and registers by role; lists of tensors for srcs."""
        self.attributes = attributes
        self.source = source
        self.name = name
        self.index = index
        self.depends: tuple[NkiInstruction, ...] = ()
        self.scope: object = None
        self._reads: tuple[NkiTensor, ...] | None = None

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def depends_on(self, *producers: NkiInstruction) -> NkiInstruction:
        """Start only after the producers have completed."""
        from nki.errors import NkiValidationError

        for producer in producers:
            if producer.scope is not None and producer.scope is not self.scope:
                raise NkiValidationError(
                    f"{self.opcode} cannot depend on {producer.opcode} of line "
                    f"{producer.source.line}: that one is inside a device loop which this one is "
                    "not in. Wire instructions of the same loop, or of an enclosing scope."
                )
        self.depends += producers
        return self

    def tensors_in(self) -> tuple[NkiTensor, ...]:
        """Tensors that are read, index tensors of run-time addresses included."""
        if self._reads is None:
            self._reads = tuple(_reads(self))
        return self._reads

    def __repr__(self) -> str:
        outs = ", ".join(repr(tensor) for tensor in self.outputs.values())
        return f"{self.opcode} -> {outs}" if outs else self.opcode


def _flat(values: Iterable[Any]) -> Iterator[NkiTensor]:
    for value in values:
        if isinstance(value, NkiTensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _flat(value)


def _reads(instruction: NkiInstruction) -> Iterator[NkiTensor]:
    inputs = list(_flat(instruction.inputs.values()))
    yield from inputs
    for tensor in (*inputs, *instruction.outputs.values()):
        dynamic, column = tensor.dynamic, tensor.column_index
        if dynamic is not None and isinstance(dynamic.index, NkiTensor):
            yield dynamic.index
        if column is not None:
            yield column.index


@dataclass(slots=True, eq=False)
class Block:
    """A straight run of instructions and loops."""

    items: list[NkiInstruction | Loop | While | Allocation] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Allocation:
    """A tensor comes into being here; inside a loop, anew in each iteration."""

    storage: Storage


@dataclass(slots=True, eq=False)
class Loop:
    """for counter in range(lower, upper, step) on the device."""

    counter: NkiScalar
    lower: int | NkiScalar
    upper: int | NkiScalar
    step: int | NkiScalar
    body: Block
    source: SourceLine


@dataclass(slots=True, eq=False)
class While:
    """while condition != 0 on the device; the body updates the register."""

    condition: NkiScalar
    body: Block
    source: SourceLine


@dataclass(slots=True, eq=False)
class Program:
    """What one core executes for one specialisation of a kernel."""

    name: str
    chip: Chip
    core: int
    num_cores: int
    body: Block
    storages: list[Storage]
    num_registers: int
    arguments: dict[str, Storage]
    """Storage of each tensor argument, by path ("x" or "weights.0")."""
    result: Any = None
    """What the kernel returned, with tensors as views."""
    findings: list[Finding] = field(default_factory=list)
    num_instructions: int = 0
    incomplete: set[int] = field(default_factory=set)
    """On-chip allocations of which unwritten elements may be read."""

    def instructions(self) -> Iterator[NkiInstruction]:
        """All instructions in program order, loop bodies once."""
        yield from _walk(self.body)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that verification noticed and that does not stop the kernel."""

    rule: str
    message: str
    source: SourceLine

    def __str__(self) -> str:
        return f"{self.message}\n  at {self.source}"


def _walk(block: Block) -> Iterator[NkiInstruction]:
    for item in block.items:
        if isinstance(item, NkiInstruction):
            yield item
        elif isinstance(item, Loop | While):
            yield from _walk(item.body)

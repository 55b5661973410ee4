"""Verifier: every instruction against its rule, every access against its memory, as it is recorded.

It also decides what cannot be seen locally: whether a matmul accumulates, whether memory was
written before it is read, and whether live tensors fit.
"""

from __future__ import annotations

from collections.abc import Callable

from neuron_chip import Chip
from nki.errors import (
    MemoryLimitError,
    NkiValidationError,
    OutOfBoundsError,
    UninitializedReadError,
    UnsupportedError,
)
from nki.program import layout
from nki.program.capacity import check_capacity, check_overlap
from nki.program.checks import CHECKS
from nki.program.enums import Engine
from nki.program.ir import Finding, NkiInstruction, Program
from nki.program.rules import RULES, Rule, legal_starts
from nki.program.storage import PARTITIONS, MemoryRegion, Storage
from nki.program.tensor import NkiTensor
from nki.program.written import Written

_COMPUTE = (Engine.tensor, Engine.vector, Engine.scalar, Engine.gpsimd)
_GENERATION_CHIP = {2: "trn1/inf2", 3: "trn2", 4: "trn3"}
_MAX_FREE_DIMS = 4


class Verifier:
    """Checks one program while it is recorded."""

    def __init__(self, chip: Chip, *, strict: bool = False) -> None:
        self.chip = chip
        self.strict = strict
        self.findings: list[Finding] = []
        self._written: list[Written | None] = []
        self._accumulated: dict[int, Written] = {}
        self._scope: dict[int, object] = {}
        self.scope: object = None
        self.incomplete: set[int] = set()

    # Allocation

    def allocate(self, storage: Storage) -> None:
        """Check a new allocation by itself."""
        shape = storage.shape
        if any(size < 1 for size in shape) or not shape:
            raise NkiValidationError(
                f"Tensor {storage.name} has shape {shape}; every size must be at least 1."
            )
        if storage.buffer.on_chip:
            self._check_tile(storage)
            self._written.append(Written(storage, everything=storage.constant is not None))
        else:
            self._written.append(None)
        self._scope[storage.index] = self.scope

    def _check_tile(self, storage: Storage) -> None:
        name, shape = storage.buffer.value.upper(), storage.shape
        if len(shape) < 2:
            raise NkiValidationError(
                f"{name} tile {storage.name} has shape {shape}; tiles need a partition and a free "
                f"dimension. Write ({shape[0]}, 1), or (1, {shape[0]}) to stay in one partition."
            )
        if shape[0] > PARTITIONS:
            raise NkiValidationError(
                f"{name} tile {storage.name} has {shape[0]} partitions; {self.chip.name} has "
                f"{PARTITIONS}. Split the first axis into tiles of nl.tile_size.pmax."
            )
        memory = self.chip.psum if storage.buffer is MemoryRegion.psum else self.chip.sbuf
        if storage.row_bytes > memory.bytes_per_partition:
            raise MemoryLimitError(
                f"{name} tile {storage.name} needs {storage.row_bytes} bytes per partition; "
                f"{self.chip.name} has {memory.bytes_per_partition}. Split the free dimension."
            )
        if storage.address is not None:
            partition, byte = storage.address
            if partition + shape[0] > PARTITIONS:
                raise MemoryLimitError(
                    f"{name} tile {storage.name} at partition {partition} with {shape[0]} "
                    f"partitions ends beyond partition {PARTITIONS}."
                )
            if byte + storage.row_bytes > memory.bytes_per_partition or byte < 0:
                raise MemoryLimitError(
                    f"{name} tile {storage.name} at byte {byte} with {storage.row_bytes} bytes "
                    f"ends beyond the partition's {memory.bytes_per_partition} bytes."
                )

    # Instructions

    def check(self, instruction: NkiInstruction, *, in_loop: bool) -> None:
        """Raise if the instruction breaks a rule; update what has been written."""
        rule = RULES[instruction.opcode]
        opcode = instruction.opcode
        generation = self.chip.generation
        if generation < rule.min_generation:
            raise UnsupportedError(
                f"nisa.{opcode} needs {_GENERATION_CHIP[rule.min_generation]} or later; this "
                f"kernel is specialised for {self.chip.name}. Set "
                "NEURON_PLATFORM_TARGET_OVERRIDE or use another instruction."
            )
        if instruction.engine not in rule.engines:
            allowed = " or ".join(f"nisa.engine.{choice.name}" for choice in rule.engines)
            raise NkiValidationError(
                f"nisa.{opcode} cannot run on engine {instruction.engine.name}. Use {allowed}."
            )
        for role, tensor in _operands(instruction):
            self._check_operand(instruction, rule, role, tensor)
        self._check_shared(instruction, rule)
        extra = CHECKS.get(opcode)
        if extra is not None:
            extra(instruction, self.chip)
        self._check_reads(instruction, in_loop=in_loop)
        if opcode in ("nc_matmul", "nc_matmul_mx"):
            self._resolve_accumulation(instruction, in_loop=in_loop)
        self._note_writes(instruction)

    def _check_operand(
        self, instruction: NkiInstruction, rule: Rule, role: str, tensor: NkiTensor
    ) -> None:
        storage = tensor.storage
        buffer = tensor.buffer
        kind = buffer.value if buffer.on_chip else "hbm"
        allowed = rule.memories.get(role, rule.other_memories)
        if kind not in allowed:
            raise NkiValidationError(
                f"nisa.{instruction.opcode}: {role} is {tensor!r}; it must be in "
                f"{' or '.join(name.upper() for name in allowed)}. " + _move_hint(kind, allowed)
            )
        if kind == "psum" and instruction.engine is Engine.gpsimd:
            raise NkiValidationError(
                f"nisa.{instruction.opcode}: {role} is {tensor!r}, which GpSimd cannot reach. "
                "Copy it to SBUF with nisa.tensor_copy, or use the vector engine."
            )
        _check_bounds(instruction, role, tensor)
        if buffer.on_chip:
            self._check_pattern(instruction, role, tensor, storage)

    def _check_pattern(
        self, instruction: NkiInstruction, role: str, tensor: NkiTensor, storage: Storage
    ) -> None:
        shape, strides = tensor.shape, tensor.strides
        row = tensor.row_elements
        if shape[0] > 1 and strides[0] != row:
            raise NkiValidationError(
                f"nisa.{instruction.opcode}: {role} {tensor!r} steps {strides[0]} elements from "
                f"partition to partition; a partition of {storage.name} has {row}. The first "
                "pair of an access pattern must step whole partitions, one at a time."
            )
        start = tensor.offset % row
        if start + layout.span(shape[1:], strides[1:]) >= row and not tensor.is_indirect():
            raise OutOfBoundsError(
                f"nisa.{instruction.opcode}: {role} {tensor!r} reaches element "
                f"{start + layout.span(shape[1:], strides[1:])} of a partition with {row}."
            )
        if instruction.engine in _COMPUTE:
            self._check_start(instruction, role, tensor)
            if len(shape) > _MAX_FREE_DIMS + 1 and _free_dims(shape, strides) > _MAX_FREE_DIMS:
                raise NkiValidationError(
                    f"nisa.{instruction.opcode}: {role} {tensor!r} has "
                    f"{_free_dims(shape, strides)} free dimensions that do not merge; engines "
                    f"address {_MAX_FREE_DIMS}. Issue one instruction for each outer index."
                )

    def _check_start(self, instruction: NkiInstruction, role: str, tensor: NkiTensor) -> None:
        first, count = tensor.partition_start, tensor.shape[0]
        if instruction.opcode == "nc_stream_shuffle":
            count = -(-count // 32) * 32
        starts = legal_starts(count)
        if first in starts:
            return
        message = (
            f"nisa.{instruction.opcode}: {role} {tensor!r} starts at partition {first} with "
            f"{tensor.shape[0]} partitions; engines can start at "
            f"{', '.join(str(start) for start in starts)} for that many. Move the tile with "
            "nisa.dma_copy, or lay it out from another partition."
        )
        if first + tensor.shape[0] > PARTITIONS or self.strict:
            raise NkiValidationError(message)
        self._warn("start_partition", message, instruction)

    def _check_shared(self, instruction: NkiInstruction, rule: Rule) -> None:
        found = dict(_operands(instruction))
        _same(instruction, found, rule.same_partitions, "partitions", lambda t: t.shape[0])
        _same(
            instruction,
            {role: t for role, t in found.items() if role not in rule.columns},
            rule.same_elements,
            "elements per partition",
            lambda t: t.free_elements,
        )
        _same(instruction, found, rule.same_dtype, "dtype", lambda t: t.dtype)
        for role in rule.columns:
            column = found.get(role)
            if column is not None and column.free_elements != 1:
                raise NkiValidationError(
                    f"nisa.{instruction.opcode}: {role} is {column!r}; it must be a number or a "
                    f"[P, 1] column, it has {column.free_elements} elements per partition."
                )
        in_psum = [
            role
            for role in rule.one_psum_at_most
            if role in found and found[role].buffer is MemoryRegion.psum
        ]
        if len(in_psum) > 1:
            raise NkiValidationError(
                f"nisa.{instruction.opcode}: {' and '.join(in_psum)} are both in PSUM; one port "
                "can read it. Copy one to SBUF with nisa.tensor_copy."
            )
        first = next(iter(found[role] for role in instruction.inputs if role in found), None)
        if first is not None:
            _check_sizes(instruction, rule, first)

    def _check_reads(self, instruction: NkiInstruction, *, in_loop: bool) -> None:
        for tensor in instruction.tensors_in():
            written = self._written[tensor.storage.index]
            if written is None or written.everything:
                continue
            state = written.state(tensor)
            if state is False and not in_loop:
                raise UninitializedReadError(
                    f"nisa.{instruction.opcode} reads {tensor!r} (allocated in line "
                    f"{tensor.storage.source.line}), which nothing has written. Write it first, "
                    "for example with nisa.memset or nisa.dma_copy."
                )
            if state is not True:
                self.incomplete.add(tensor.storage.index)
                self._warn(
                    "uninitialized_read",
                    f"nisa.{instruction.opcode} reads {tensor!r}, of which some elements were "
                    "never written; they are NaN. Clear the tile with nisa.memset first.",
                    instruction,
                )

    def _resolve_accumulation(self, instruction: NkiInstruction, *, in_loop: bool) -> None:
        dst = instruction.outputs["dst"]
        storage = dst.storage
        done = self._accumulated.get(storage.index)
        if done is None:
            done = self._accumulated[storage.index] = Written(storage)
        flag = instruction.attributes.get("accumulate")
        if flag is None and in_loop and self._scope[storage.index] is not self.scope:
            return  # decided while running: the first iteration overwrites, later ones add
        state = done.state(dst)
        if flag is None:
            instruction.attributes["accumulate"] = done.mask(dst) if state is None else state
        elif flag and state is not True:
            written = self._written[storage.index]
            if written is not None and written.state(dst) is False:
                raise UninitializedReadError(
                    f"nisa.{instruction.opcode} accumulates into {dst!r}, which nothing has "
                    "written. Use accumulate=False for the first product, or leave it out."
                )
            if self.chip.generation < 4:
                self._warn(
                    "accumulate_on_other_write",
                    f"nisa.{instruction.opcode} accumulates into {dst!r}, last written by another "
                    f"instruction; {self.chip.name} leaves the result undefined. Add with "
                    "nisa.tensor_tensor instead.",
                    instruction,
                )

    def _note_writes(self, instruction: NkiInstruction) -> None:
        matmul = instruction.opcode in ("nc_matmul", "nc_matmul_mx")
        for tensor in instruction.outputs.values():
            index = tensor.storage.index
            written = self._written[index]
            if written is not None:
                if (tensor.is_indirect() or RULES[instruction.opcode].partial_output) and (
                    not written.everything
                ):
                    self.incomplete.add(index)
                written.add(tensor)
            done = self._accumulated.get(index)
            if done is not None:
                if matmul:
                    done.add(tensor)
                else:
                    done.remove(tensor)

    def _warn(self, rule: str, message: str, instruction: NkiInstruction) -> None:
        if not any(f.rule == rule and f.source == instruction.source for f in self.findings):
            self.findings.append(Finding(rule, message, instruction.source))

    def finish(self, program: Program) -> None:
        """Checks that need the whole program."""
        program.incomplete = self.incomplete
        self.findings.extend(check_capacity(program))
        self.findings.extend(check_overlap(program))


def _operands(instruction: NkiInstruction) -> list[tuple[str, NkiTensor]]:
    found: list[tuple[str, NkiTensor]] = list(instruction.outputs.items())
    for role, value in instruction.inputs.items():
        if isinstance(value, NkiTensor):
            found.append((role, value))
        elif isinstance(value, list | tuple):
            found.extend((role, item) for item in value if isinstance(item, NkiTensor))
    return found


def _move_hint(kind: str, allowed: tuple[str, ...]) -> str:
    if kind == "hbm":
        return "Load it into a tile with nisa.dma_copy first."
    if kind == "psum":
        return "Copy it to SBUF with nisa.tensor_copy first."
    if allowed == ("psum",):
        return "Allocate it with buffer=nl.psum."
    return "Allocate it with another buffer."


def _check_bounds(instruction: NkiInstruction, role: str, tensor: NkiTensor) -> None:
    storage = tensor.storage
    total = storage.num_bytes // tensor.itemsize
    reach = tensor.offset
    for dim, (size, stride) in enumerate(zip(tensor.shape, tensor.strides, strict=True)):
        if dim == 0 and tensor.dynamic is not None and tensor.dynamic.per_partition:
            continue
        reach += (size - 1) * stride
    if tensor.offset < 0 or reach >= total:
        raise OutOfBoundsError(
            f"nisa.{instruction.opcode}: {role} {tensor!r} with offset {tensor.offset} and strides "
            f"{tensor.strides} reaches element {reach} of {storage.name}, which has {total}."
        )


def _free_dims(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    count = 0
    previous: tuple[int, int] | None = None
    for size, stride in zip(shape[1:], strides[1:], strict=True):
        if size == 1:
            continue
        if previous is None or previous[1] != size * stride:
            count += 1
        previous = (size, stride)
    return max(count, 1)


def _same(
    instruction: NkiInstruction,
    found: dict[str, NkiTensor],
    roles: tuple[str, ...],
    what: str,
    of: Callable[[NkiTensor], object],
) -> None:  # fmt: skip
    values = {role: of(found[role]) for role in roles if role in found}
    if len(set(values.values())) > 1:
        listing = ", ".join(f"{role} has {value}" for role, value in values.items())
        raise NkiValidationError(
            f"nisa.{instruction.opcode} needs the same {what} in {' and '.join(values)}: {listing}."
            " Slice or broadcast the views to match."
        )


def _check_sizes(instruction: NkiInstruction, rule: Rule, tensor: NkiTensor) -> None:
    count = tensor.free_elements
    if rule.max_free is not None and count > rule.max_free:
        raise NkiValidationError(
            f"nisa.{instruction.opcode} reads {count} elements per partition of {tensor!r}; "
            f"{rule.max_free} is the most. Split the free dimension."
        )
    if rule.min_free is not None and count < rule.min_free:
        raise NkiValidationError(
            f"nisa.{instruction.opcode} reads {count} elements per partition of {tensor!r}; "
            f"{rule.min_free} is the least. Pad the tile."
        )


__all__ = ["Verifier"]

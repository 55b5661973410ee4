"""What a specialised kernel takes, writes and returns, known before it runs.

Frameworks build their operators from this: result shapes for fake tensors, arguments that change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nki.program.ir import Allocation, Block, Loop, Program, While
from nki.program.printer import print_program
from nki.program.storage import MemoryRegion
from nki.program.tensor import NkiTensor


@dataclass(frozen=True, slots=True)
class Result:
    """A tensor that the kernel makes."""

    shape: tuple[int, ...]
    dtype: str
    allocation: int | None
    """Position among the kernel's allocations in shared HBM, if it is the whole of one."""


@dataclass(frozen=True, slots=True)
class Returned:
    """An argument that the kernel returns as it is."""

    path: str


@dataclass(frozen=True, slots=True)
class Interface:
    """The outside of one specialisation."""

    results: Any
    """What the kernel returns: tuples, lists and dicts of Result, Returned and constants."""
    written: frozenset[str]
    """Paths of the arguments that the kernel writes."""


def interface_of(programs: Sequence[Program]) -> Interface:
    """Read off the programs of all cores."""
    written = {
        tensor.storage.argument
        for program in programs
        for item in program.instructions()
        for tensor in item.outputs.values()
        if tensor.storage.argument is not None
    }
    places = _shared_allocations(programs[0])
    return Interface(describe(programs[0].result, places), frozenset(written))


def made(results: Any) -> Iterator[Result]:
    """The new tensors among results, in order."""
    if isinstance(results, Result):
        yield results
    elif isinstance(results, list | tuple):
        for item in results:
            yield from made(item)
    elif isinstance(results, dict):
        for item in results.values():
            yield from made(item)


def _shared_allocations(program: Program) -> dict[int, int]:
    """Storage index -> position among shared allocations; those in loops have no fixed one."""
    found: dict[int, int] = {}
    for item in program.body.items:
        if isinstance(item, Allocation) and item.storage.buffer is MemoryRegion.shared_hbm:
            found[item.storage.index] = len(found)
        elif isinstance(item, Loop | While) and _allocates_shared(item.body):
            break
    return found


def _allocates_shared(block: Block) -> bool:
    return any(
        item.storage.buffer is MemoryRegion.shared_hbm
        if isinstance(item, Allocation)
        else isinstance(item, Loop | While) and _allocates_shared(item.body)
        for item in block.items
    )


def describe(result: Any, places: dict[int, int]) -> Any:
    """What a kernel returned, tensors as Result or Returned."""
    if isinstance(result, NkiTensor):
        storage = result.storage
        whole = (
            result.shape == storage.shape
            and result.offset == 0
            and result.dtype == storage.dtype
            and not result.is_indirect()
            and result.is_contiguous()
        )
        if storage.argument is not None and whole:
            return Returned(storage.argument)
        return Result(result.shape, result.dtype, places.get(storage.index) if whole else None)
    if isinstance(result, list | tuple):
        items = [describe(item, places) for item in result]
        return items if isinstance(result, list) else tuple(items)
    if isinstance(result, dict):
        return {name: describe(item, places) for name, item in result.items()}
    return result


def digest(programs: Sequence[Program]) -> str:
    """Of the programs' texts and constants: equal for kernels that do the same."""
    text = hashlib.sha256()
    for program in programs:
        text.update(print_program(program).encode())
        for storage in program.storages:
            if storage.constant is not None:
                text.update(np.ascontiguousarray(storage.constant).tobytes())
    return text.hexdigest()

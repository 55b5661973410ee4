"""Loops, the launch grid, scheduling hints and debug output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from nki.isa.operands import emit, tile
from nki.program.builder import current
from nki.program.enums import Engine
from nki.program.indexing import DynamicSlice
from nki.program.registers import NkiScalar
from nki.program.tensor import NkiTensor


def _range(start: int, stop: int | None, step: int) -> range:
    return range(start) if stop is None else range(start, stop, step)


def affine_range(start: int, stop: int | None = None, step: int = 1) -> range:
    """range, unrolled (an older spelling)."""
    return _range(start, stop, step)


def sequential_range(start: int, stop: int | None = None, step: int = 1) -> range:
    """range, unrolled (an older spelling)."""
    return _range(start, stop, step)


def static_range(start: int, stop: int | None = None, step: int = 1) -> range:
    """range, unrolled (an older spelling)."""
    return _range(start, stop, step)


def dynamic_range(start: Any, stop: Any = None, step: Any = 1) -> Iterable[NkiScalar]:
    """A loop on the device; its bounds may be registers."""
    if stop is None:
        start, stop = 0, start
    return current().loop_range(start, stop, step)


def fori_loop(
    lower: int | NkiScalar,
    upper: int | NkiScalar,
    body_fun: Callable[[NkiScalar], object],
    step: int = 1,
) -> None:
    """body_fun(i) for i from lower below upper, as a loop on the device."""
    current().loop(lower, upper, step, body_fun)


def while_loop(init: NkiScalar, body_fun: Callable[[NkiScalar], NkiScalar]) -> None:
    """r = init; while r != 0: r = body_fun(r), as a loop on the device."""
    current().while_loop(init, body_fun)


def program_id(axis: int = 0) -> int:
    """Which of the launched programs this is."""
    builder = current()
    position = builder.core
    for size in reversed(builder.grid[axis + 1 :]):
        position //= size
    return position % builder.grid[axis] if builder.grid else 0


def num_programs(axes: int | tuple[int, ...] = 0) -> Any:
    """How many programs were launched along an axis."""
    grid = current().grid
    if isinstance(axes, tuple | list):
        return tuple(num_programs(axis) for axis in axes)
    return grid[axes] if axes < len(grid) else 1


def program_ndim() -> int:
    """Dimensions of the launch grid; 0 without one."""
    return len(current().grid)


@contextmanager
def no_reorder() -> Iterator[None]:
    """Instructions inside keep their order."""
    builder = current()
    first = builder.program.num_instructions
    yield
    builder.caches.setdefault("no_reorder", []).append((first, builder.program.num_instructions))


def ds(start: Any, size: int) -> DynamicSlice:
    """An index for `size` elements from `start`, which may be known only at run time."""
    return DynamicSlice(start, int(size))


def device_print(print_prefix: str, tensor: NkiTensor) -> None:
    """Print a tensor's contents when the kernel runs."""
    emit(
        "device_print",
        Engine.sync,
        {},
        {"tensor": tile(tensor, "tensor")},
        {"prefix": print_prefix},
    )

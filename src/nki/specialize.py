"""From a Python function and example arguments to a Program for each core."""

from __future__ import annotations

import dataclasses
import gc
import inspect
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

import numpy as np

from neuron_chip import Chip
from nki import arrays
from nki.errors import NkiValidationError, StrictSubsetError
from nki.program import builder as building
from nki.program.ir import Program
from nki.program.nki_object import NkiObject
from nki.program.storage import MemoryRegion
from nki.program.tensor import NkiTensor
from nki.subset import check_subset

Path = str


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """A kernel call with its arguments bound to parameter names."""

    function: Callable[..., Any]
    arguments: dict[str, Any]
    arrays: dict[Path, Any]
    """Array arguments by path: "x", "weights.0", "config.table"."""

    @staticmethod
    def bind(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Match arguments to parameters, defaults included."""
        bound = inspect.signature(function).bind(*args, **kwargs)
        bound.apply_defaults()
        found: dict[Path, Any] = {}
        for name, value in bound.arguments.items():
            found.update(_find_arrays(name, value))
        return Call(function, dict(bound.arguments), found)

    def with_arrays(self, found: dict[Path, Any]) -> Call:
        """The same call on other arrays of the same shapes and dtypes."""
        return Call(self.function, self.arguments, found)

    def key(self) -> Hashable | None:
        """What a specialisation depends on, None if some argument cannot be compared."""
        try:
            parts = tuple((name, _freeze(value)) for name, value in self.arguments.items())
            hash(parts)
        except _UnhashableError:
            return None
        return parts


class _UnhashableError(Exception):
    pass


def _find_arrays(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    if arrays.is_array(value):
        yield path, value
    elif isinstance(value, list | tuple):
        for position, item in enumerate(value):
            yield from _find_arrays(f"{path}.{position}", item)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _find_arrays(f"{path}.{name}", item)
    elif isinstance(value, NkiObject) and not isinstance(value, NkiTensor):
        for name, item in vars(value).items():
            yield from _find_arrays(f"{path}.{name}", item)


def _freeze(value: Any) -> Hashable:
    if arrays.is_array(value):
        return ("tensor", *arrays.describe(value))
    if value is None or isinstance(value, bool | int | float | str | Enum | bytes | np.generic):
        return (type(value).__name__, value)
    if isinstance(value, list | tuple):
        return (type(value).__name__, *(_freeze(item) for item in value))
    if isinstance(value, dict):
        return ("dict", *((name, _freeze(item)) for name, item in value.items()))
    if callable(value) and not isinstance(value, NkiObject):
        return ("function", id(value))
    if dataclasses.is_dataclass(value) or isinstance(value, NkiObject):
        return (type(value).__qualname__, *((n, _freeze(v)) for n, v in vars(value).items()))
    raise _UnhashableError


def _substitute(path: Path, value: Any, tensors: dict[Path, NkiTensor]) -> Any:
    """The argument with its arrays replaced by tensors; containers without arrays stay."""
    if path in tensors:
        return tensors[path]
    if not any(name.startswith(path + ".") for name in tensors):
        return value
    if isinstance(value, list | tuple):
        items = [_substitute(f"{path}.{i}", item, tensors) for i, item in enumerate(value)]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*items)
        return type(value)(items)
    if isinstance(value, dict):
        return {name: _substitute(f"{path}.{name}", item, tensors) for name, item in value.items()}
    import copy

    clone = copy.copy(value)
    for name, item in vars(value).items():
        object.__setattr__(clone, name, _substitute(f"{path}.{name}", item, tensors))
    return clone


def run_function(builder: building.Builder, call: Call) -> Any:
    """Run the kernel's Python with tensors in place of arrays; return what it returns."""
    with building.use(builder):
        tensors = {
            path: builder.allocate(
                *arrays.describe(value),
                MemoryRegion.shared_hbm,
                name=path,
                argument=path,
            )
            for path, value in call.arrays.items()
        }
        arguments = {
            name: _substitute(name, value, tensors) for name, value in call.arguments.items()
        }
        signature = inspect.signature(call.function)
        positional: list[Any] = []
        keyword: dict[str, Any] = {}
        for name, parameter in signature.parameters.items():
            if name not in arguments:
                continue
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                positional.extend(arguments[name])
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                keyword.update(arguments[name])
            elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                keyword[name] = arguments[name]
            else:
                positional.append(arguments[name])
        return call.function(*positional, **keyword)


def trace(
    call: Call, *, chip: Chip, core: int, grid: tuple[int, ...], num_cores: int, strict: bool
) -> Program:
    """The program of one core."""
    if strict:
        check_subset(call.function)
        _check_arguments(call)
    builder = building.Builder(
        call.function.__name__,
        chip=chip,
        core=core,
        num_cores=num_cores,
        grid=grid,
        strict=strict,
    )
    with _no_collection():
        result = run_function(builder, call)
        check_result(result)
        return builder.finish(result)


def _check_arguments(call: Call) -> None:
    for name, value in call.arguments.items():
        if isinstance(value, list):
            raise StrictSubsetError(
                f"strict: the argument {name} is a list of {len(value)}. AWS's compiler takes "
                "tuples; pass tuple(...)."
            )


@contextmanager
def _no_collection() -> Iterator[None]:
    """Pause the garbage collector: a trace makes many objects, all of which stay."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def check_result(result: Any) -> None:
    """Results must be tensors in shared HBM (private HBM is tolerated)."""
    for tensor in result_tensors(result):
        if tensor.on_chip:
            raise NkiValidationError(
                f"The kernel returns {tensor!r}; results must be in HBM. Allocate them with "
                "buffer=nl.shared_hbm and copy with nisa.dma_copy.",
                source=tensor.storage.source,
            )


def result_tensors(result: Any) -> Iterator[NkiTensor]:
    """The tensors in what a kernel returns."""
    if isinstance(result, NkiTensor):
        yield result
    elif isinstance(result, list | tuple):
        for item in result:
            yield from result_tensors(item)
    elif isinstance(result, dict):
        for item in result.values():
            yield from result_tensors(item)

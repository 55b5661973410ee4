"""One operator call as a cost rule sees it: names, shapes and dtypes, no values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from neuron_chip import Chip, Instance, UnknownNameError
from neuron_chip.dtypes import Dtype
from neuron_chip.dtypes import dtype as dtype_row

_UNKNOWN_DTYPE = "float32"


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Whose time the work is for: one logical core of an instance."""

    instance: Instance
    lnc: int

    @property
    def chip(self) -> Chip:
        """The chip of the instance."""
        return self.instance.chip


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """Metadata of a tensor argument or result."""

    on_device: bool
    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.sizes)

    @property
    def row(self) -> Dtype:
        """The dtype's row; one that the chip model does not know counts as fp32."""
        try:
            return dtype_row(self.dtype)
        except UnknownNameError:
            return dtype_row(_UNKNOWN_DTYPE)

    @property
    def stored(self) -> int:
        """Elements in memory: a broadcast dim is stored once."""
        return math.prod(
            size for size, stride in zip(self.sizes, self.strides, strict=True) if stride
        )

    @property
    def num_bytes(self) -> float:
        """Bytes that reading it moves."""
        return self.stored * self.row.bytes

    @property
    def contiguous_elements(self) -> int:
        """Elements of the longest piece that lies in order in memory."""
        piece = 1
        for size, stride in zip(reversed(self.sizes), reversed(self.strides), strict=True):
            if size == 1:
                continue
            if stride != piece:
                break
            piece *= size
        return piece


@dataclass(frozen=True, kw_only=True)
class Call:
    """An operator call: `arguments` and `results` hold Tensors, numbers, lists, None."""

    op: str
    arguments: tuple[Any, ...]
    results: tuple[Any, ...]

    @classmethod
    def from_parts(cls, parts: tuple[str, Sequence[Any], Sequence[Any]]) -> Self:
        """Build one from what the observer recorded."""
        op, arguments, results = parts
        return cls(
            op=op,
            arguments=tuple(_value(each) for each in arguments),
            results=tuple(_value(each) for each in results),
        )

    @property
    def inputs(self) -> list[Tensor]:
        """Tensor arguments, those in lists too."""
        return list(_tensors(self.arguments))

    @property
    def outputs(self) -> list[Tensor]:
        """Tensor results, those in lists too; without any, what an in-place list op changed."""
        found = list(_tensors(self.results))
        if not found and self.op.partition(".")[0].endswith("_"):
            found = list(_tensors(self.arguments[:1]))
        return found

    def tensor(self, index: int) -> Tensor:
        """The tensor argument at `index`.

        Raises:
            IndexError: there is none there.
        """
        value = self.argument(index)
        if not isinstance(value, Tensor):
            raise IndexError(f"{self.op} has no tensor argument {index}")
        return value

    def argument(self, index: int, default: Any = None) -> Any:
        """The argument at `index`, `default` when the call has fewer."""
        return self.arguments[index] if index < len(self.arguments) else default


def _value(raw: Any) -> Any:
    if isinstance(raw, tuple):
        on_device, dtype, sizes, strides = raw
        return Tensor(on_device=on_device, dtype=dtype, sizes=tuple(sizes), strides=tuple(strides))
    if isinstance(raw, list):
        return tuple(_value(each) for each in raw)
    return raw


def _tensors(values: Sequence[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, tuple):
            yield from _tensors(value)

"""The driver "dry" computes no values: a program that asks for one gets what the user supplied.

What else the driver is: addresses without memory (`csrc/runtime/segment.cpp`), shapes from meta
kernels (`csrc/dispatch/dry.cpp`), groups with absent members (`distributed/dry_group.py`), and the
modelled clock, which always runs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from torch_neuronx import _C
from torch_neuronx.errors import DryValueError


@dataclass(frozen=True)
class _Supply:
    value: float | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)


_supply = _Supply()


@contextmanager
def dry_values(
    value: float | None = None, sizes: Mapping[str, int] | None = None
) -> Iterator[None]:
    """Within the block, a dry run may ask for values. For all threads, since backward has its own.

    Args:
        value: what `.item()`, `.cpu()`, `bool(tensor)` and the like give; None makes them errors.
        sizes: for operators whose result has as many entries as the data say, how many: for
            example {"aten::nonzero": 128}; "*" stands for all others.
    """
    global _supply
    before = _supply
    _supply = _Supply(value=value, sizes={**before.sizes, **(sizes or {})})
    try:
        yield
    finally:
        _supply = before


def install() -> None:
    """Let the dispatcher ask here."""
    _C._set_supply_hook(_supplied)


def _supplied(op: str, is_size: bool) -> float:
    if is_size:
        size = _supply.sizes.get(op, _supply.sizes.get("*"))
        if size is None:
            raise DryValueError(
                f"{op} at {_calling_line()} has a result whose size depends on values, and the "
                f"driver 'dry' computes none. Supply it: with torch.neuron.dry_values(sizes="
                f"{{{op!r}: 128}}): ... - or use a form of fixed shape, which the chip needs too."
            )
        return float(size)
    if _supply.value is None:
        raise DryValueError(
            f"The program reads a value of a neuron tensor ({op}) at {_calling_line()}, and the "
            "driver 'dry' computes none. Supply one: with torch.neuron.dry_values(1.0): ..."
        )
    return _supply.value


def _calling_line() -> str:
    frame = sys._getframe(2)
    outside = frame
    while outside is not None and "/torch/" in outside.f_code.co_filename.replace("\\", "/"):
        if outside.f_back is None:
            break
        outside = outside.f_back
    return f"{outside.f_code.co_filename}:{outside.f_lineno} in {outside.f_code.co_name}"

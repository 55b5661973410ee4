"""TORCH_NEURONX_SEGMENT_ALLOCATOR_CONFIG: what the text may say. `settings` reads the variable."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch_neuronx.errors import SettingError, did_you_mean


@dataclass(frozen=True, kw_only=True)
class AllocatorConfig:
    """TORCH_NEURONX_SEGMENT_ALLOCATOR_CONFIG, taken apart."""

    max_split_size_bytes: int = -1
    """Cached blocks above this size are never split; -1 sets no limit."""
    memory_fraction: float = 1.0
    """Share of each core's HBM that the process may reserve."""


def _parse_split_size(text: str) -> int:
    if not text.isdecimal():
        raise SettingError(f"kMaxSplitSizeBytes:{text} is not a number of bytes.")
    return int(text)


def _parse_fraction(text: str) -> float:
    try:
        fraction = float(text)
    except ValueError:
        fraction = -1.0
    if not 0 < fraction <= 1:
        raise SettingError(f"kMemoryFraction:{text} is not above 0 and at most 1.")
    return fraction


# key in the variable -> (field of AllocatorConfig, reader)
_ALLOCATOR_KEYS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "kMaxSplitSizeBytes": ("max_split_size_bytes", _parse_split_size),
    "kMemoryFraction": ("memory_fraction", _parse_fraction),
}
# Keys of AWS's allocator that ours has no use for.
_IDLE_ALLOCATOR_KEYS = ("kMaxNonSplitRoundingBytes",)


def parse_allocator_config(text: str) -> AllocatorConfig:
    """Read "key=value,key=value"."""
    fields: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, _, value = part.replace(":", "=", 1).partition("=")
        key, value = key.strip(), value.strip()
        if key in _IDLE_ALLOCATOR_KEYS:
            warnings.warn(
                f"TORCH_NEURONX_SEGMENT_ALLOCATOR_CONFIG: {key} changes nothing here, because "
                "blocks of 16 MiB and more have segments of their own.",
                stacklevel=2,
            )
            continue
        if key not in _ALLOCATOR_KEYS:
            known = (*_ALLOCATOR_KEYS, *_IDLE_ALLOCATOR_KEYS)
            raise SettingError(
                f"The allocator has no key {key!r}.{did_you_mean(key, known)} "
                f"Known: {', '.join(known)}."
            )
        field, parse = _ALLOCATOR_KEYS[key]
        fields[field] = parse(value)
    return AllocatorConfig(**fields)

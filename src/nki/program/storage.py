"""Memory regions and allocations. Contents live in the simulator, views in `tensor`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from nki import dtypes
from nki.errors import NkiValidationError, SourceLine

PARTITIONS = 128


class MemoryRegion(Enum):
    """Where a tensor lives."""

    sbuf = "sbuf"
    psum = "psum"
    private_hbm = "private_hbm"
    shared_hbm = "shared_hbm"

    on_chip: bool
    """True for memories with a partition dimension."""

    def __init__(self, name: str) -> None:
        self.on_chip = name in ("sbuf", "psum")


_REGION_NAMES = {region.value: region for region in MemoryRegion} | {
    "hbm": MemoryRegion.private_hbm,
    "dram": MemoryRegion.private_hbm,
}


def region(buffer: object) -> MemoryRegion:
    """The region called `buffer`."""
    if isinstance(buffer, MemoryRegion):
        return buffer
    found = _REGION_NAMES.get(str(buffer))
    if found is None:
        raise NkiValidationError(
            f"{buffer!r} is not a memory region. Use nl.sbuf, nl.psum, nl.hbm or nl.shared_hbm."
        )
    return found


@dataclass(slots=True, eq=False)
class Storage:
    """One allocation. On chip it is partitions x row bytes, in HBM a flat range of bytes."""

    index: int
    name: str
    buffer: MemoryRegion
    shape: tuple[int, ...]
    dtype: dtypes.DType
    source: SourceLine
    address: tuple[int, int] | None = None
    """Partition and byte within the partition, when the kernel placed the tensor itself."""
    constant: Any = None
    """Contents known at trace time."""
    argument: str | None = None
    """Name of the kernel argument whose memory this is."""
    has_address: bool = field(init=False)
    elements: int = field(init=False)
    row_elements: int = field(init=False)
    """On chip: elements of one partition. HBM: all elements."""
    itemsize: int = field(init=False)
    """Bytes of one element of the allocated dtype."""
    num_bytes: int = field(init=False)
    """Bytes in all partitions."""
    row_bytes: int = field(init=False)
    """Bytes of one partition (on chip)."""

    def __post_init__(self) -> None:
        self.elements = math.prod(self.shape)
        self.row_elements = (
            math.prod(self.shape[1:]) if self.buffer.on_chip and self.shape else self.elements
        )
        self.has_address = self.address is not None
        self.itemsize = dtypes.itemsize(self.dtype)
        self.num_bytes = self.elements * self.itemsize
        self.row_bytes = self.row_elements * self.itemsize

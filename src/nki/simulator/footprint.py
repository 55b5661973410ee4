"""Which bytes a tensor view touches, coarse enough to compare quickly: partitions x bytes."""

from __future__ import annotations

from dataclasses import dataclass

from nki.program import layout
from nki.program.tensor import NkiTensor


@dataclass(frozen=True, slots=True)
class Region:
    """A box in one allocation: partitions [p0, p1) and bytes [b0, b1) of each."""

    storage: int
    p0: int
    p1: int
    b0: int
    b1: int

    def overlaps(self, other: Region) -> bool:
        """True if the boxes share a byte."""
        return (
            self.storage == other.storage
            and self.p0 < other.p1
            and other.p0 < self.p1
            and self.b0 < other.b1
            and other.b0 < self.b1
        )

    def covers(self, other: Region) -> bool:
        """True if `other` lies inside of this box."""
        return (
            self.p0 <= other.p0
            and self.p1 >= other.p1
            and self.b0 <= other.b0
            and self.b1 >= other.b1
        )


def region(view: NkiTensor) -> Region:
    """The smallest box around a view; all of the allocation for run-time addresses."""
    storage = view.storage
    size = view.itemsize
    if view.is_indirect():
        rows = storage.shape[0] if view.on_chip else 1
        return Region(storage.index, 0, rows, 0, storage.num_bytes)
    if not view.on_chip:
        begin = view.offset * size
        end = begin + (layout.span(view.shape, view.strides) + 1) * size
        return Region(storage.index, 0, 1, begin, end)
    row = view.row_elements
    first, start = divmod(view.offset, row)
    end = start + layout.span(view.shape[1:], view.strides[1:]) + 1
    return Region(storage.index, first, first + view.shape[0], start * size, end * size)


def contiguous_bytes(view: NkiTensor) -> int:
    """Length of the longest runs that a DMA descriptor can move at once."""
    run = 1
    skip = 1 if view.on_chip else 0
    pairs = list(zip(view.shape[skip:], view.strides[skip:], strict=True))
    for size, stride in reversed(pairs):
        if size == 1:
            continue
        if stride != run:
            break
        run *= size
    return run * view.itemsize

"""Grids of tiles: a tensor cut into equal tiles, or tiles allocated as a grid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from nki import dtypes
from nki.errors import NkiValidationError, OutOfBoundsError
from nki.language.allocate import ndarray
from nki.program.nki_object import NkiObject
from nki.program.storage import PARTITIONS, MemoryRegion
from nki.program.tensor import NkiTensor


class NkiTileGrid(NkiObject):
    """A tensor as a grid of tiles; the last tile along an axis may be smaller."""

    def __init__(self, data: NkiTensor | None, tile_shape: Sequence[int],
                 parts: dict[tuple[int, ...], NkiTensor] | None = None,
                 shape: Sequence[int] | None = None) -> None:  # fmt: skip
        self.data = data
        self.tile_shape = tuple(int(size) for size in tile_shape)
        self._parts = parts
        if data is not None:
            if len(self.tile_shape) != data.ndim:
                raise NkiValidationError(
                    f"tile_shape {self.tile_shape} has {len(self.tile_shape)} dimensions, {data!r} "
                    f"has {data.ndim}."
                )
            self.element_shape = data.shape
            self.shape = tuple(
                -(-size // tile) for size, tile in zip(data.shape, self.tile_shape, strict=True)
            )
            self.buffer, self.dtype = data.buffer, data.dtype
        else:
            assert parts is not None
            assert shape is not None
            self.shape = tuple(shape)
            self.element_shape = tuple(
                n * t for n, t in zip(self.shape, self.tile_shape, strict=True)
            )
            first = next(iter(parts.values()))
            self.buffer, self.dtype = first.buffer, first.dtype

    @property
    def index_step_elements(self) -> tuple[int, ...]:
        """Elements from one tile to the next along each axis."""
        return self.tile_shape

    @property
    def is_data_representable(self) -> bool:
        """True if one tensor holds all tiles."""
        return self.data is not None

    @property
    def is_remainder(self) -> bool:
        """True if the last tile of some axis is smaller."""
        return any(
            size % tile for size, tile in zip(self.element_shape, self.tile_shape, strict=True)
        )

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[NkiTensor]:
        for position in itertools.product(*(range(size) for size in self.shape)):
            yield self[position]

    def __getitem__(self, position: Any) -> NkiTensor:
        place = position if isinstance(position, tuple) else (position,)
        place = tuple(place) + (0,) * (len(self.shape) - len(place))
        for axis, (index, size) in enumerate(zip(place, self.shape, strict=True)):
            if not 0 <= index < size:
                raise OutOfBoundsError(f"Tile {place}: axis {axis} of the grid has {size} tiles.")
        if self._parts is not None:
            return self._parts[place]
        assert self.data is not None
        key = tuple(
            slice(index * tile, min((index + 1) * tile, size))
            for index, tile, size in zip(place, self.tile_shape, self.data.shape, strict=True)
        )
        return self.data[key]


class NkiBlockGrid(NkiObject):
    """A grid of blocks, each a grid of tiles."""

    def __init__(self, blocks: dict[tuple[int, ...], NkiTileGrid], shape: Sequence[int],
                 tile_shape: Sequence[int], block_shape: Sequence[int],
                 data: NkiTensor | None) -> None:  # fmt: skip
        self._blocks = blocks
        self.shape = tuple(shape)
        self.tile_shape = tuple(tile_shape)
        self.block_shape = tuple(block_shape)
        self.data = data
        first = next(iter(blocks.values()))
        self.buffer, self.dtype = first.buffer, first.dtype
        self.element_shape = (
            data.shape
            if data is not None
            else tuple(
                n * b * t
                for n, b, t in zip(self.shape, self.block_shape, self.tile_shape, strict=True)
            )
        )

    @property
    def index_step_elements(self) -> tuple[int, ...]:
        """Elements from one block to the next along each axis."""
        return tuple(b * t for b, t in zip(self.block_shape, self.tile_shape, strict=True))

    @property
    def is_data_representable(self) -> bool:
        """True if one tensor holds all blocks."""
        return self.data is not None

    @property
    def is_remainder(self) -> bool:
        """True if the last block of some axis is smaller."""
        return any(
            size % step
            for size, step in zip(self.element_shape, self.index_step_elements, strict=True)
        )

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[NkiTileGrid]:
        yield from self._blocks.values()

    def __getitem__(self, position: Any) -> NkiTileGrid:
        place = position if isinstance(position, tuple) else (position,)
        place = tuple(place) + (0,) * (len(self.shape) - len(place))
        if place not in self._blocks:
            raise OutOfBoundsError(f"Block {place}: the grid has {self.shape} blocks.")
        return self._blocks[place]


def _default_tile(source: NkiTensor) -> tuple[int, ...]:
    return (min(PARTITIONS, source.shape[0]), *source.shape[1:])


def tiles(source: NkiTensor, *, tile_shape: Sequence[int] | None = None) -> NkiTileGrid:
    """`source` as a grid of tiles of tile_shape (by default: 128 rows)."""
    return NkiTileGrid(source, _default_tile(source) if tile_shape is None else tile_shape)


def blocks(
    source: NkiTensor, *, tile_shape: Sequence[int] | None = None, block_shape: Sequence[int]
) -> NkiBlockGrid:
    """`source` as a grid of blocks of block_shape tiles."""
    tile = tuple(_default_tile(source) if tile_shape is None else tile_shape)
    step = tuple(b * t for b, t in zip(block_shape, tile, strict=True))
    outer = NkiTileGrid(source, step)
    parts = {
        place: NkiTileGrid(outer[place], tile)
        for place in itertools.product(*(range(size) for size in outer.shape))
    }
    return NkiBlockGrid(parts, outer.shape, tile, block_shape, source)


def alloc_tiles(
    *,
    tile_shape: Sequence[int],
    element_shape: Sequence[int],
    buffer: MemoryRegion | str,
    dtype: dtypes.DType,
    address: Sequence[int] | None = None,
    name: str = "",
) -> NkiTileGrid:
    """A grid of new tiles that together hold element_shape elements."""
    shape = [-(-size // tile) for size, tile in zip(element_shape, tile_shape, strict=True)]
    step = math.prod(tile_shape[1:]) * dtypes.itemsize(dtypes.canonical(dtype))
    parts: dict[tuple[int, ...], NkiTensor] = {}
    for number, place in enumerate(itertools.product(*(range(size) for size in shape))):
        sizes = [
            min(tile, size - index * tile)
            for index, tile, size in zip(place, tile_shape, element_shape, strict=True)
        ]
        at = None if address is None else (address[0], address[1] + number * step)
        label = f"{name}_{number}" if name else ""
        parts[place] = ndarray(sizes, dtype, buffer, label, at)
    return NkiTileGrid(None, tile_shape, parts, shape)


def alloc_blocks(
    *,
    tile_shape: Sequence[int],
    block_shape: Sequence[int],
    element_shape: Sequence[int],
    buffer: MemoryRegion | str,
    dtype: dtypes.DType,
    address: Sequence[int] | None = None,
    name: str = "",
) -> NkiBlockGrid:
    """A grid of blocks of new tiles."""
    step = [b * t for b, t in zip(block_shape, tile_shape, strict=True)]
    shape = [-(-size // extent) for size, extent in zip(element_shape, step, strict=True)]
    row = math.prod(step[1:]) * dtypes.itemsize(dtypes.canonical(dtype)) * block_shape[0]
    parts: dict[tuple[int, ...], NkiTileGrid] = {}
    for number, place in enumerate(itertools.product(*(range(size) for size in shape))):
        sizes = [
            min(extent, size - index * extent)
            for index, extent, size in zip(place, step, element_shape, strict=True)
        ]
        parts[place] = alloc_tiles(
            tile_shape=tile_shape,
            element_shape=sizes,
            buffer=buffer,
            dtype=dtype,
            address=None if address is None else (address[0], address[1] + number * row),
            name=f"{name}_{number}" if name else "",
        )
    return NkiBlockGrid(parts, shape, tile_shape, block_shape, None)

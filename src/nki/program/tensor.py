"""NkiTensor: a view of an allocation, as offset and strides. Views never copy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nki import dtypes
from nki.errors import OutOfBoundsError, ViewError
from nki.program import indexing, layout
from nki.program.nki_object import NkiObject
from nki.program.registers import NkiScalar
from nki.program.storage import MemoryRegion, Storage, region


@dataclass(frozen=True, slots=True)
class DynamicOffset:
    """The part of an address that is known only on the device."""

    index: NkiTensor | NkiScalar
    stride: int
    """Elements that one step of the index moves."""
    limit: int
    """Number of valid indices."""
    per_partition: bool
    """True: element p of `index` selects row p (gather or scatter). False: one index for all."""
    dim: int | None = None
    """The view's dimension that carries the index; it cannot be sliced again."""


@dataclass(frozen=True, slots=True)
class ColumnIndex:
    """Tensor indirection: each column of the view is picked by a run-time index."""

    index: NkiTensor
    count: int


class NkiTensor(NkiObject):
    """A typed, shaped view of an allocation. Offset and strides count elements of `dtype`."""

    __slots__ = ("buffer", "column_index", "dtype", "dynamic", "name", "offset", "shape",
                 "storage", "strides")  # fmt: skip

    def __init__(
        self,
        shape: Sequence[int],
        dtype: dtypes.DType,
        storage: Any,
        buffer: MemoryRegion | str = MemoryRegion.sbuf,
        name: str = "",
        *,
        offset: int = 0,
        strides: Sequence[int] | None = None,
        dynamic: DynamicOffset | None = None,
        column_index: ColumnIndex | None = None,
    ) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.storage: Storage = storage
        self.buffer = buffer if isinstance(buffer, MemoryRegion) else region(buffer)
        self.name = name
        self.offset = offset
        self.strides = layout.row_major(self.shape) if strides is None else tuple(strides)
        self.dynamic = dynamic
        self.column_index = column_index

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        label = self.name or (self.storage.name if self.storage is not None else "?")
        dims = ", ".join(str(size) for size in self.shape)
        return f"{label}[{dims}] {self.dtype} in {self.buffer.value}"

    # Facts about the view

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return dtypes.itemsize(self.dtype)

    @property
    def on_chip(self) -> bool:
        """True in SBUF and PSUM, where dim 0 is the partition dimension."""
        return self.buffer.on_chip

    @property
    def row_elements(self) -> int:
        """Elements of `dtype` in one partition of the allocation (all of them in HBM)."""
        storage = self.storage
        if self.dtype == storage.dtype:
            return storage.row_elements
        return storage.row_bytes // dtypes.itemsize(self.dtype)

    @property
    def partition_start(self) -> int:
        """First partition of an on-chip view, relative to its allocation's base."""
        base = self.storage.address[0] if self.storage.address is not None else 0
        return base + (self.offset // self.row_elements if self.offset else 0)

    @property
    def free_elements(self) -> int:
        """Elements per partition."""
        return math.prod(self.shape[1:])

    def is_contiguous(self) -> bool:
        """True if the elements are dense in row-major order (on chip: within each partition)."""
        skip = 1 if self.on_chip else 0
        return layout.is_dense(self.shape[skip:], self.strides[skip:])

    def get_pattern(self) -> list[list[int]]:
        """The view as [[stride, count], ...]."""
        return [[stride, count] for stride, count in zip(self.strides, self.shape, strict=True)]

    def is_indirect(self) -> bool:
        """True if part of the address is known only on the device."""
        return self.dynamic is not None or self.column_index is not None

    # Views

    def with_layout(
        self, shape: Sequence[int], strides: Sequence[int], offset: int | None = None
    ) -> NkiTensor:
        """The same memory with another shape, strides and offset."""
        view = NkiTensor.__new__(NkiTensor)
        view.shape = tuple(shape)
        view.dtype = self.dtype
        view.storage = self.storage
        view.buffer = self.buffer
        view.name = self.name
        view.offset = self.offset if offset is None else offset
        view.strides = tuple(strides)
        view.dynamic = self.dynamic
        view.column_index = self.column_index
        return view

    def with_dynamic(self, dynamic: DynamicOffset) -> NkiTensor:
        """The same view with a run-time offset."""
        if self.is_indirect():
            raise ViewError(
                f"{self!r} already has a run-time index; a view can have one. "
                "Combine the indices before selecting."
            )
        view = self.with_layout(self.shape, self.strides)
        view.dynamic = dynamic
        return view

    def __getitem__(self, key: Any) -> NkiTensor:
        return indexing.index(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        indexing.assign(self[key], value)

    def _axis(self, dim: int, *, partition: bool, what: str) -> int:
        """A checked dimension; `partition` says whether dim 0 is allowed on chip."""
        if not -self.ndim <= dim < self.ndim:
            raise OutOfBoundsError(
                f"{what} names dimension {dim} of {self!r}, which has {self.ndim}."
            )
        dim %= self.ndim
        if dim == 0 and not partition and (self.on_chip or self._rows_indexed()):
            raise ViewError(
                f"{what} on dimension 0 of {self!r}: it is the partition dimension, which views "
                "cannot change. Use another dimension or move the data with nisa.nc_transpose or "
                "nisa.dma_copy."
            )
        return dim

    def _rows_indexed(self) -> bool:
        return self.dynamic is not None and self.dynamic.per_partition

    def _forbid_indexed(self, dim: int, what: str) -> None:
        if self.dynamic is not None and self.dynamic.dim == dim:
            raise ViewError(
                f"{what} on dimension {dim} of {self!r}: a run-time index already selects along "
                "it. Slice the other dimensions, or compute the index differently."
            )

    def slice(self, dim: int, start: int, end: int, step: int = 1) -> NkiTensor:
        """Elements start, start + step, ... below end of one dimension."""
        dim = self._axis(dim, partition=True, what="slice")
        self._forbid_indexed(dim, "slice")
        if not (0 <= start < end <= self.shape[dim]) or step < 1:
            raise OutOfBoundsError(
                f"slice({dim}, {start}, {end}, {step}) of {self!r}: needs 0 <= start < end <= "
                f"{self.shape[dim]} and step >= 1."
            )
        count = -(-(end - start) // step)
        shape = (*self.shape[:dim], count, *self.shape[dim + 1 :])
        strides = (*self.strides[:dim], self.strides[dim] * step, *self.strides[dim + 1 :])
        return self.with_layout(shape, strides, self.offset + start * self.strides[dim])

    def select(self, dim: int, index: int | NkiTensor | NkiScalar) -> NkiTensor:
        """One element of a dimension, which disappears; the index may be known at run time."""
        if isinstance(index, NkiTensor | NkiScalar):
            return self._select_dynamic(dim, index)
        dim = self._axis(dim, partition=True, what="select")
        self._forbid_indexed(dim, "select")
        index = int(index)
        if not -self.shape[dim] <= index < self.shape[dim]:
            raise OutOfBoundsError(
                f"select({dim}, {index}) of {self!r}: that dimension has {self.shape[dim]} "
                "elements."
            )
        key: list[Any] = [slice(None)] * self.ndim
        key[dim] = index % self.shape[dim]
        return indexing.index(self, tuple(key))

    def _select_dynamic(self, dim: int, index: NkiTensor | NkiScalar) -> NkiTensor:
        dim = self._axis(dim, partition=not self.on_chip, what="select with a run-time index")
        if isinstance(index, NkiTensor) and index.size != 1:
            raise ViewError(
                f"select needs one index, {index!r} has {index.size}. "
                "For one index per partition use vector_select."
            )
        view = self.with_dynamic(
            DynamicOffset(index, self.strides[dim], self.shape[dim], per_partition=False)
        )
        shape = self.shape[:dim] + self.shape[dim + 1 :]
        strides = self.strides[:dim] + self.strides[dim + 1 :]
        if len(shape) < (2 if self.on_chip else 1):
            shape, strides = (*shape, 1), (*strides, 1)
        return view.with_layout(shape, strides)

    def vector_select(self, dim: int, vector_offset: NkiTensor) -> NkiTensor:
        """Row `vector_offset[p]` of dim 0 for each partition p (HBM only)."""
        if dim != 0 or self.on_chip:
            raise ViewError(
                f"vector_select({dim}) of {self!r}: only dimension 0 of a tensor in HBM can have "
                "one index per partition. Use nisa.nc_n_gather or .indirect on chip."
            )
        rows = vector_offset.size
        view = self.with_dynamic(
            DynamicOffset(vector_offset, self.strides[0], self.shape[0], per_partition=True, dim=0)
        )
        return view.with_layout((rows, *self.shape[1:]), self.strides)

    def permute(self, dims: Sequence[int]) -> NkiTensor:
        """Reorder dimensions; dim 0 stays first on chip."""
        order = tuple(int(dim) for dim in dims)
        if sorted(order) != list(range(self.ndim)):
            raise ViewError(f"permute({order}) of {self!r}: needs each of 0..{self.ndim - 1} once.")
        if order[0] != 0:
            self._axis(0, partition=False, what="permute")
        return self.with_layout(
            [self.shape[dim] for dim in order], [self.strides[dim] for dim in order]
        )

    def broadcast(self, dim: int, size: int) -> NkiTensor:
        """Repeat a dimension of size 1 without copying."""
        dim = self._axis(dim, partition=False, what="broadcast")
        if self.shape[dim] != 1:
            raise ViewError(
                f"broadcast({dim}, {size}) of {self!r}: dimension {dim} has size "
                f"{self.shape[dim]}; only size 1 can be repeated."
            )
        shape = (*self.shape[:dim], size, *self.shape[dim + 1 :])
        return self.with_layout(shape, (*self.strides[:dim], 0, *self.strides[dim + 1 :]))

    def expand_dim(self, dim: int) -> NkiTensor:
        """Insert a dimension of size 1."""
        if dim < 0:
            dim += self.ndim + 1
        if not 0 <= dim <= self.ndim:
            raise OutOfBoundsError(f"expand_dim({dim}) of {self!r}: use 0..{self.ndim}.")
        if dim == 0:
            self._axis(0, partition=False, what="expand_dim")
        stride = self.strides[dim] * self.shape[dim] if dim < self.ndim else 1
        return self.with_layout(
            (*self.shape[:dim], 1, *self.shape[dim:]),
            (*self.strides[:dim], stride, *self.strides[dim:]),
        )

    def squeeze_dim(self, dim: int) -> NkiTensor:
        """Remove a dimension of size 1."""
        dim = self._axis(dim, partition=False, what="squeeze_dim")
        if self.shape[dim] != 1:
            raise ViewError(
                f"squeeze_dim({dim}) of {self!r}: that dimension has size {self.shape[dim]}, not 1."
            )
        return self.with_layout(
            self.shape[:dim] + self.shape[dim + 1 :], self.strides[:dim] + self.strides[dim + 1 :]
        )

    def reshape_dim(self, dim: int, shape: Sequence[int]) -> NkiTensor:
        """Split one dimension; one size may be -1."""
        sizes = tuple(int(size) for size in shape)
        dim = self._axis(dim, partition=sizes == (self.shape[dim],), what="reshape_dim")
        sizes = layout.fill_in(sizes, self.shape[dim], what=f"reshape_dim({dim}) of {self!r}")
        inner = layout.row_major(sizes)
        return self.with_layout(
            self.shape[:dim] + sizes + self.shape[dim + 1 :],
            self.strides[:dim]
            + tuple(step * self.strides[dim] for step in inner)
            + self.strides[dim + 1 :],
        )

    def flatten_dims(self, start_dim: int, end_dim: int) -> NkiTensor:
        """Merge dimensions start_dim..end_dim (inclusive); they must be dense."""
        start = self._axis(start_dim, partition=start_dim == end_dim, what="flatten_dims")
        end = self._axis(end_dim, partition=True, what="flatten_dims")
        merged = layout.merge(self.shape[start : end + 1], self.strides[start : end + 1])
        if merged is None:
            raise ViewError(
                f"flatten_dims({start_dim}, {end_dim}) of {self!r} with strides {self.strides}: "
                "those dimensions are not contiguous. Copy the view to a new tile first."
            )
        size, stride = merged
        return self.with_layout(
            (*self.shape[:start], size, *self.shape[end + 1 :]),
            (*self.strides[:start], stride, *self.strides[end + 1 :]),
        )

    def reshape(self, shape: Sequence[int]) -> NkiTensor:
        """Another shape of the same elements; dim 0 is kept on chip."""
        sizes = layout.fill_in(
            tuple(int(size) for size in shape), self.size, what=f"reshape of {self!r}"
        )
        if (self.on_chip or self._rows_indexed()) and sizes[0] != self.shape[0]:
            raise ViewError(
                f"reshape({sizes}) of {self!r}: the partition dimension must stay {self.shape[0]}."
            )
        strides = layout.restride(self.shape, self.strides, sizes, keep_first=self.on_chip)
        if strides is None:
            raise ViewError(
                f"reshape({sizes}) of {self!r} with strides {self.strides} would need a copy. "
                "Copy the view to a new tile first."
            )
        return self.with_layout(sizes, strides)

    def rearrange(
        self,
        src_pattern: Sequence[Any],
        dst_pattern: Sequence[Any],
        fixed_sizes: dict[str, int] | None = None,
    ) -> NkiTensor:
        """Split, reorder and merge dimensions by name."""
        return indexing.rearrange(self, src_pattern, dst_pattern, fixed_sizes or {})

    def ap(
        self,
        pattern: Sequence[Sequence[int]],
        offset: int | None = None,
        scalar_offset: NkiTensor | NkiScalar | None = None,
        vector_offset: NkiTensor | None = None,
        indirect_dim: int = 0,
        dtype: dtypes.DType | None = None,
    ) -> NkiTensor:
        """Address the allocation directly with [[stride, count], ...], in elements."""
        return indexing.access_pattern(
            self, pattern, offset, scalar_offset, vector_offset, indirect_dim, dtype
        )

    def view(self, dtype: dtypes.DType) -> NkiTensor:
        """The same bytes as another dtype; the last dimension is rescaled."""
        return indexing.reinterpret(self, dtypes.canonical(dtype))

    reinterpret_cast = view

    def indirect(self, index: NkiTensor, num_elem: int | None = None) -> NkiTensor:
        """Columns picked at run time, the same for every partition group (trn3)."""
        if self.is_indirect():
            raise ViewError(f"{self!r} already has a run-time index; a view can have one.")
        if self.ndim != 2:
            raise ViewError(f"indirect needs a 2-D tile, {self!r} has {self.ndim} dimensions.")
        count = index.size if num_elem is None else int(num_elem)
        if not 0 < count <= index.size:
            raise OutOfBoundsError(
                f"indirect uses {count} indices of {index!r}, which has {index.size}."
            )
        view = self.with_layout((self.shape[0], count), self.strides)
        view.column_index = ColumnIndex(index, count)
        return view

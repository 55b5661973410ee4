"""How `tensor[...]`, `.ap`, `.view` and `.rearrange` become offset and strides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nki import dtypes
from nki.errors import OutOfBoundsError, ViewError
from nki.program.registers import NkiScalar

if TYPE_CHECKING:
    from nki.program.tensor import NkiTensor

_assign: Callable[[Any, Any], None] | None = None


def on_assign(copy: Callable[[Any, Any], None]) -> None:
    """Say which instruction `tensor[...] = value` stands for; called once by `nki.isa`."""
    global _assign
    _assign = copy


def assign(view: NkiTensor, value: Any) -> None:
    """Copy `value` into a view, except when an in-place operator already wrote it."""
    if view is value:
        return
    assert _assign is not None
    _assign(view, value)


@dataclass(frozen=True, slots=True)
class DynamicSlice:
    """`nl.ds(start, size)`: size elements from start, which may be known at run time."""

    start: Any
    size: int


def index(tensor: NkiTensor, key: Any) -> NkiTensor:  # noqa: C901
    """NumPy-style indexing; on chip the partition dimension stays and 2 dimensions remain."""
    keys = list(key) if isinstance(key, tuple) else [key]
    for position, item in enumerate(keys):
        if item is Ellipsis:
            missing = tensor.ndim - (len(keys) - 1)
            keys[position : position + 1] = [slice(None)] * missing
            break
    if len(keys) > tensor.ndim:
        raise OutOfBoundsError(
            f"{len(keys)} indices for {tensor!r}, which has {tensor.ndim} dimensions."
        )
    on_chip = tensor.on_chip
    shape: list[int] = []
    strides: list[int] = []
    offset = tensor.offset
    dynamic: tuple[Any, int, int, int | None] | None = None
    last = len(tensor.shape) - 1
    for dim, (size, stride) in enumerate(zip(tensor.shape, tensor.strides, strict=True)):
        item = keys[dim] if dim < len(keys) else slice(None)
        if isinstance(item, slice):
            start, count, step = _slice(tensor, dim, item)
            offset += start * stride
            shape.append(count)
            strides.append(stride * step)
            continue
        if isinstance(item, DynamicSlice):
            if isinstance(item.start, int) or _plain(item.start):
                start = int(item.start)
                if start < 0 or start + item.size > size:
                    raise OutOfBoundsError(
                        f"nl.ds({start}, {item.size}) on dimension {dim} of {tensor!r}: "
                        f"that dimension ends at {size}."
                    )
                offset += start * stride
            else:
                dynamic = (item.start, stride, size - item.size + 1, dim)
            shape.append(item.size)
            strides.append(stride)
            continue
        if _plain(item):
            position = int(item)
            if not -size <= position < size:
                raise OutOfBoundsError(
                    f"Index {position} on dimension {dim} of {tensor!r}: "
                    f"that dimension has {size} elements."
                )
            offset += (position % size) * stride
        else:
            dynamic = (item, stride, size, None)
        if on_chip and (dim == 0 or (dim == last and len(shape) < 2)):
            shape.append(1)
            strides.append(stride)
    if not shape:
        shape, strides = [1], [1]
    view = tensor.with_layout(shape, strides, offset)
    if dynamic is None:
        return view
    return _with_index(view, *dynamic)


def _plain(value: Any) -> bool:
    return not isinstance(value, NkiScalar) and hasattr(value, "__index__")


def _with_index(view: NkiTensor, start: Any, stride: int, limit: int, dim: int | None) -> NkiTensor:
    from nki.program.tensor import DynamicOffset, NkiTensor

    if not isinstance(start, NkiTensor | NkiScalar):
        raise ViewError(
            f"{start!r} ({type(start).__name__}) is not an index of {view!r}. "
            "Use ints, slices, nl.ds, or a 1-element SBUF tensor."
        )
    if isinstance(start, NkiTensor) and start.size != 1:
        raise ViewError(f"A run-time index needs one element, {start!r} has {start.size}.")
    return view.with_dynamic(DynamicOffset(start, stride, limit, per_partition=False, dim=dim))


def _slice(tensor: NkiTensor, dim: int, item: slice) -> tuple[int, int, int]:
    size = tensor.shape[dim]
    if item.start is None and item.stop is None and item.step is None:
        return 0, size, 1
    step = 1 if item.step is None else int(item.step)
    start = 0 if item.start is None else int(item.start)
    stop = size if item.stop is None else int(item.stop)
    start = start + size if start < 0 else start
    stop = stop + size if stop < 0 else stop
    if not 0 <= start < stop <= size or step < 1:
        raise OutOfBoundsError(
            f"Slice {start}:{stop}:{step} on dimension {dim} of {tensor!r}: needs "
            f"0 <= start < stop <= {size} and a step of at least 1."
        )
    return start, -(-(stop - start) // step), step


def access_pattern(
    tensor: NkiTensor,
    pattern: Sequence[Sequence[int]],
    offset: int | None,
    scalar_offset: NkiTensor | NkiScalar | None,
    vector_offset: NkiTensor | None,
    indirect_dim: int,
    dtype: dtypes.DType | None,
) -> NkiTensor:
    """`NkiTensor.ap`: see there."""
    from nki.program.tensor import DynamicOffset, NkiTensor

    if not pattern:
        raise ViewError("ap needs at least one [stride, count] pair.")
    if scalar_offset is not None and vector_offset is not None:
        raise ViewError("ap takes scalar_offset or vector_offset, not both.")
    strides = [int(pair[0]) for pair in pattern]
    shape = [int(pair[1]) for pair in pattern]
    if any(count < 1 for count in shape):
        raise ViewError(f"ap pattern {pattern} of {tensor!r}: every count must be at least 1.")
    name = tensor.dtype if dtype is None else dtypes.canonical(dtype)
    if offset is None:
        start = tensor.offset * tensor.itemsize // dtypes.itemsize(name)
    else:
        start = int(offset)
    view = NkiTensor(
        shape,
        name,
        tensor.storage,
        tensor.buffer,
        tensor.name,
        offset=start,
        strides=strides,
    )
    base = tensor.shape
    step = 1
    for size in base[indirect_dim + 1 :]:
        step *= size
    if name != tensor.dtype:
        step = step * tensor.itemsize // dtypes.itemsize(name)
    limit = base[indirect_dim] if indirect_dim < len(base) else 1
    if scalar_offset is not None:
        if isinstance(scalar_offset, NkiTensor) and scalar_offset.size != 1:
            raise ViewError(
                f"scalar_offset needs one element, {scalar_offset!r} has {scalar_offset.size}."
            )
        return view.with_dynamic(DynamicOffset(scalar_offset, step, limit, per_partition=False))
    if vector_offset is not None:
        if indirect_dim != 0 or tensor.on_chip:
            raise ViewError(
                f"vector_offset with indirect_dim={indirect_dim} on {tensor!r}: only dimension 0 "
                "of a tensor in HBM can have one index per partition."
            )
        return view.with_dynamic(DynamicOffset(vector_offset, step, limit, True, 0))
    return view


def reinterpret(tensor: NkiTensor, dtype: dtypes.DType) -> NkiTensor:
    """`NkiTensor.view`: see there."""
    old, new = tensor.itemsize, dtypes.itemsize(dtype)
    if tensor.is_indirect() and old != new:
        raise ViewError(f"view({dtype}) of {tensor!r}: not possible after a run-time index.")
    if old == new:
        view = tensor.with_layout(tensor.shape, tensor.strides)
        view.dtype = dtype
        return view
    if tensor.strides[-1] != 1 and tensor.shape[-1] != 1:
        raise ViewError(
            f"view({dtype}) of {tensor!r}: the last dimension must be contiguous, its stride is "
            f"{tensor.strides[-1]}."
        )
    total = tensor.shape[-1] * old
    if total % new or (tensor.offset * old) % new:
        raise ViewError(
            f"view({dtype}) of {tensor!r}: {total} bytes in the last dimension are not a whole "
            f"number of {new}-byte elements."
        )
    strides = []
    for stride in tensor.strides[:-1]:
        if stride * old % new:
            raise ViewError(
                f"view({dtype}) of {tensor!r}: stride {stride} x {old} bytes is not a multiple of "
                f"{new} bytes."
            )
        strides.append(stride * old // new)
    view = tensor.with_layout(
        (*tensor.shape[:-1], total // new), (*strides, 1), tensor.offset * old // new
    )
    view.dtype = dtype
    return view


def rearrange(
    tensor: NkiTensor,
    source: Sequence[Any],
    target: Sequence[Any],
    fixed_sizes: dict[str, int],
) -> NkiTensor:
    """`NkiTensor.rearrange`: split into named dimensions, reorder them, merge groups."""
    groups = [(part,) if isinstance(part, str) else tuple(part) for part in source]
    wanted = [(part,) if isinstance(part, str) else tuple(part) for part in target]
    names = [name for group in groups for name in group]
    if len(groups) != tensor.ndim or sorted(names) != sorted(n for g in wanted for n in g):
        raise ViewError(
            f"rearrange {source} -> {target} of {tensor!r}: the first pattern needs one entry for "
            "each dimension and both patterns the same names."
        )
    view = tensor
    for position, group in reversed(list(enumerate(groups))):
        if len(group) > 1:
            sizes = tuple(fixed_sizes.get(name, -1) for name in group)
            view = view.reshape_dim(position, sizes)
    order = [names.index(name) for group in wanted for name in group]
    view = view.permute(order)
    for position, group in enumerate(wanted):
        if len(group) > 1:
            view = view.flatten_dims(position, position + len(group) - 1)
    return view

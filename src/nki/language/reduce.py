"""Reductions, normalisations and products: several instructions behind one name."""

from __future__ import annotations

import builtins as _builtins
import math as _math
from collections.abc import Sequence

from nki import dtypes, isa
from nki.errors import NkiValidationError
from nki.language.allocate import ndarray, psum
from nki.language.math import apply_activation, apply_binary
from nki.program.builder import current
from nki.program.enums import reduce_cmd
from nki.program.storage import MemoryRegion
from nki.program.tensor import NkiTensor

Axis = int | Sequence[int]


def _axes(x: NkiTensor, axis: Axis) -> tuple[int, ...]:
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    return tuple(sorted(item % x.ndim for item in given))


def _reduced_shape(x: NkiTensor, axes: tuple[int, ...], *, keepdims: bool) -> tuple[int, ...]:
    shape = tuple(
        1 if dim in axes else size
        for dim, size in enumerate(x.shape)
        if keepdims or dim not in axes
    )
    return shape if len(shape) > 1 else (*shape, 1)


def _reduce(
    op: str, x: NkiTensor, axis: Axis, dtype: dtypes.DType | None, *, keepdims: bool = False
) -> NkiTensor:
    axes = _axes(x, axis)
    dst = ndarray(_reduced_shape(x, axes, keepdims=keepdims), x.dtype if dtype is None else dtype)
    isa.tensor_reduce(dst, op, x, axes, keepdims=keepdims)
    return dst


def sum(
    x: NkiTensor, axis: Axis, dtype: dtypes.DType | None = None, keepdims: bool = False
) -> NkiTensor:
    """Sum over trailing free axes."""
    return _reduce("add", x, axis, dtype, keepdims=keepdims)


def max(
    x: NkiTensor, axis: Axis, dtype: dtypes.DType | None = None, keepdims: bool = False
) -> NkiTensor:
    """Maximum over trailing free axes."""
    return _reduce("maximum", x, axis, dtype, keepdims=keepdims)


def min(
    x: NkiTensor, axis: Axis, dtype: dtypes.DType | None = None, keepdims: bool = False
) -> NkiTensor:
    """Minimum over trailing free axes."""
    return _reduce("minimum", x, axis, dtype, keepdims=keepdims)


def prod(
    x: NkiTensor, axis: Axis, dtype: dtypes.DType | None = None, keepdims: bool = False
) -> NkiTensor:
    """Product over trailing free axes."""
    return _reduce("multiply", x, axis, dtype, keepdims=keepdims)


def all(x: NkiTensor, axis: Axis, dtype: dtypes.DType | None = None) -> NkiTensor:
    """1.0 where all elements are not 0."""
    return _reduce("logical_and", x, axis, dtype)


def mean(
    x: NkiTensor, axis: Axis, dtype: dtypes.DType | None = None, keepdims: bool = False
) -> NkiTensor:
    """Mean over trailing free axes, summed in fp32."""
    axes = _axes(x, axis)
    total = _reduce("add", x, axes, "float32", keepdims=keepdims)
    count = _math.prod(x.shape[dim] for dim in axes)
    return apply_binary("multiply", total, 1.0 / count, x.dtype if dtype is None else dtype)


def var(
    x: NkiTensor, axis: Axis, dtype: dtypes.DType | None = None, keepdims: bool = False
) -> NkiTensor:
    """Variance over all free axes (keepdims is ignored, as in AWS's API)."""
    del keepdims
    axes = _axes(x, axis)
    if axes != tuple(range(1, x.ndim)):
        raise NkiValidationError(
            f"nl.var over axis {axis} of {x!r}: all free axes are needed. Reshape the tile first."
        )
    count = _math.prod(x.shape[1:])
    center = mean(x, axes, "float32")
    offset = ndarray(x.shape, "float32")
    isa.tensor_scalar(offset, x, "subtract", center)
    total = ndarray(center.shape, "float32")
    isa.activation_reduce(offset, "square", offset, "add", total)
    return apply_binary("multiply", total, 1.0 / count, x.dtype if dtype is None else dtype)


def softmax(x: NkiTensor, axis: Axis = -1, dtype: dtypes.DType | None = None) -> NkiTensor:
    """exp(x - max) / sum over the free axes."""
    axes = _axes(x, axis)
    if axes != tuple(range(1, x.ndim)) and not (
        axes == (x.ndim - 1,) and _math.prod(x.shape[1:-1]) == 1
    ):
        raise NkiValidationError(
            f"nl.softmax over axis {axis} of {x!r}: the axis must cover the free dimensions. "
            "Slice the tile to one row for each partition."
        )
    peak = ndarray((x.shape[0], 1), "float32")
    isa.tensor_reduce(peak, "maximum", x, tuple(range(1, x.ndim)), negate=True)
    total = ndarray((x.shape[0], 1), "float32")
    powers = ndarray(x.shape, "float32")
    isa.activation(
        powers,
        "exp",
        x,
        bias=peak,
        reduce_op="add",
        reduce_res=total,
        reduce_cmd=reduce_cmd.reset_reduce,
    )
    inverse = ndarray((x.shape[0], 1), "float32")
    isa.reciprocal(inverse, total)
    dst = ndarray(x.shape, x.dtype if dtype is None else dtype)
    isa.tensor_scalar(dst, powers, "multiply", inverse)
    return dst


def rms_norm(
    x: NkiTensor,
    w: NkiTensor | None,
    axis: Axis,
    n: int,
    epsilon: float = 1e-06,
    dtype: dtypes.DType | None = None,
    compute_dtype: dtypes.DType | None = None,
) -> NkiTensor:
    """x / sqrt(sum(x^2) / n + epsilon) * w, the sum over the free axes."""
    axes = _axes(x, axis)
    if axes != tuple(range(1, x.ndim)):
        raise NkiValidationError(
            f"nl.rms_norm over axis {axis} of {x!r}: the axis must cover the free dimensions."
        )
    middle = "float32" if compute_dtype is None else compute_dtype
    squares = ndarray(x.shape, middle)
    total = ndarray((x.shape[0], 1), "float32")
    isa.activation_reduce(squares, "square", x, "add", total)
    isa.tensor_scalar(total, total, "multiply", 1.0 / n, op1="add", operand1=epsilon)
    root = apply_activation("rsqrt", total, "float32")
    kind = x.dtype if dtype is None else dtype
    scaled = ndarray(x.shape, kind if w is None else middle)
    isa.tensor_scalar(scaled, x, "multiply", root)
    if w is None:
        return scaled
    dst = ndarray(x.shape, kind)
    weights = w if w.shape == x.shape else broadcast_to(w, x.shape)
    isa.tensor_tensor(dst, scaled, weights, "multiply")
    return dst


_MOVING = 512


def matmul(x: NkiTensor, y: NkiTensor, transpose_x: bool = False) -> NkiTensor:
    """x @ y in PSUM; with transpose_x, x is given as [K, M]."""
    if not transpose_x:
        turned = transpose(x)
        x = ndarray(turned.shape, x.dtype)
        isa.tensor_copy(x, turned)
    dst = ndarray((x.free_elements, y.free_elements), "float32", psum)
    for start in range(0, y.free_elements, _MOVING):
        end = _builtins.min(start + _MOVING, y.free_elements)
        isa.nc_matmul(dst[:, start:end], x, y[:, start:end])
    return dst


def transpose(x: NkiTensor, dtype: dtypes.DType | None = None) -> NkiTensor:
    """A 2-D tile with its partition and free dimension swapped, in PSUM."""
    dst = ndarray((x.free_elements, x.shape[0]), x.dtype if dtype is None else dtype, psum)
    if x.buffer is MemoryRegion.psum:
        moved = ndarray(x.shape, x.dtype)
        isa.tensor_copy(moved, x)
        x = moved
    if dst.dtype != x.dtype:
        cast = ndarray(x.shape, dst.dtype)
        isa.tensor_copy(cast, x)
        x = cast
    isa.nc_transpose(dst, x)
    return dst


def broadcast_to(
    x: NkiTensor, shape: Sequence[int], dtype: dtypes.DType | None = None
) -> NkiTensor:
    """x with its dimensions of size 1 repeated; a copy when partitions or dtype change."""
    target = tuple(int(size) for size in shape)
    if len(target) != x.ndim or any(
        have not in (want, 1) for have, want in zip(x.shape, target, strict=True)
    ):
        raise NkiValidationError(
            f"broadcast_to({target}) of {x!r}: same number of dimensions, and sizes 1 where they "
            "differ, are needed."
        )
    view = x
    for dim in range(1, len(target)):
        if view.shape[dim] != target[dim]:
            view = view.broadcast(dim, target[dim])
    if target[0] != x.shape[0]:
        view = _repeat_partition(view, target)
    if dtype is None or dtype == view.dtype:
        return view
    dst = ndarray(target, dtype)
    isa.tensor_copy(dst, view)
    return dst


def _repeat_partition(row: NkiTensor, shape: tuple[int, ...]) -> NkiTensor:
    """Copy one partition to all, by a product with ones; ScalarE moves it out of PSUM."""
    caches = current().caches
    kind = row.dtype if row.dtype in ("float32", "bfloat16", "float16") else "float32"
    key = ("ones", shape[0], kind)
    if key not in caches or current().in_loop:
        column = ndarray((1, shape[0]), kind)
        isa.memset(column, 1.0)
        caches[key] = column
    ones = caches[key]
    flat = row
    if row.dtype != kind or row.buffer is MemoryRegion.psum or not row.is_contiguous():
        flat = ndarray(row.shape, kind)
        isa.tensor_copy(flat, row)
    flat = flat.reshape((1, _math.prod(shape[1:])))
    dst = ndarray((shape[0], flat.shape[1]), row.dtype)
    for start in range(0, flat.shape[1], _MOVING):
        end = _builtins.min(start + _MOVING, flat.shape[1])
        product = ndarray((shape[0], end - start), "float32", psum)
        isa.nc_matmul(product, ones, flat[:, start:end])
        isa.activation(dst[:, start:end], "copy", product)
    return dst.reshape(shape)


def expand_dims(x: NkiTensor, axis: int) -> NkiTensor:
    """A view with a new dimension of size 1."""
    return x.expand_dim(axis)


def gather_flattened(
    data: NkiTensor, indices: NkiTensor, axis: int = 0, dtype: dtypes.DType | None = None
) -> NkiTensor:
    """data[p, indices[p, i]] for each partition, the free dimensions counting as one."""
    if axis not in (0, 1):
        raise NkiValidationError(f"gather_flattened over axis {axis}; the free axes are gathered.")
    dst = ndarray(indices.shape, data.dtype)
    isa.nc_n_gather(dst, data, indices)
    if dtype is None or dtype == data.dtype:
        return dst
    cast = ndarray(indices.shape, dtype)
    isa.tensor_copy(cast, dst)
    return cast

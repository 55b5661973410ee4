"""New tensors and their first contents; moves between HBM and tiles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nki import dtypes, isa
from nki.errors import NkiValidationError
from nki.program.builder import current
from nki.program.storage import MemoryRegion, region
from nki.program.tensor import NkiTensor

sbuf = MemoryRegion.sbuf
psum = MemoryRegion.psum
private_hbm = MemoryRegion.private_hbm
hbm = private_hbm
shared_hbm = MemoryRegion.shared_hbm


def ndarray(
    shape: Sequence[int],
    dtype: dtypes.DType,
    buffer: MemoryRegion | str = sbuf,
    name: str = "",
    address: Sequence[int] | None = None,
) -> NkiTensor:
    """A tensor with undefined contents; shape[0] is the partition dimension on chip."""
    sizes = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
    return current().allocate(
        sizes,
        dtypes.canonical(dtype),
        region(buffer),
        name=name or "",
        address=None if address is None else (int(address[0]), int(address[1])),
    )


def full(
    shape: Sequence[int],
    fill_value: float,
    dtype: dtypes.DType,
    buffer: MemoryRegion | str = sbuf,
    name: str = "",
) -> NkiTensor:
    """A tensor filled with one number."""
    tensor = ndarray(shape, dtype, buffer, name)
    if tensor.on_chip:
        isa.memset(tensor, fill_value)
        return tensor
    values = np.full(tensor.shape, fill_value, np.float32 if fill_value % 1 else np.int64)
    constant = shared_constant(dtypes.cast(values, tensor.dtype), dtype=tensor.dtype)
    isa.dma_copy(tensor, constant)
    return tensor


def zeros(
    shape: Sequence[int],
    dtype: dtypes.DType,
    buffer: MemoryRegion | str = sbuf,
    name: str = "",
) -> NkiTensor:
    """A tensor of zeros."""
    return full(shape, 0, dtype, buffer, name)


def ones(
    shape: Sequence[int],
    dtype: dtypes.DType,
    buffer: MemoryRegion | str = sbuf,
    name: str = "",
) -> NkiTensor:
    """A tensor of ones."""
    return full(shape, 1, dtype, buffer, name)


def empty_like(
    x: NkiTensor,
    dtype: dtypes.DType | None = None,
    buffer: MemoryRegion | str | None = None,
    name: str = "",
) -> NkiTensor:
    """A tensor of x's shape with undefined contents."""
    return ndarray(
        x.shape, x.dtype if dtype is None else dtype, x.buffer if buffer is None else buffer, name
    )


def zeros_like(
    x: NkiTensor,
    dtype: dtypes.DType | None = None,
    buffer: MemoryRegion | str | None = None,
    name: str = "",
) -> NkiTensor:
    """Zeros of x's shape."""
    return full(
        x.shape,
        0,
        x.dtype if dtype is None else dtype,
        x.buffer if buffer is None else buffer,
        name,
    )


def shared_constant(constant: Any, *, dtype: dtypes.DType | None = None) -> NkiTensor:
    """A constant in HBM, from an array or a .npy file."""
    data = np.load(constant) if isinstance(constant, str | Path) else np.asarray(constant)
    if data.dtype == np.float64:
        data = data.astype(np.float32)
    if data.dtype == np.int64:
        data = data.astype(np.int32)
    return current().allocate(
        tuple(data.shape),
        dtypes.canonical(data.dtype) if dtype is None else dtype,
        MemoryRegion.private_hbm,
        name="constant",
        constant=data,
    )


def shared_identity_matrix(
    n: int, dtype: dtypes.DType = "uint8", dst: NkiTensor | None = None
) -> NkiTensor:
    """The n x n identity in SBUF, made once for each dtype unless dst is given."""
    caches = current().caches
    key = ("identity", n, dtypes.canonical(dtype))
    if dst is None and key in caches:
        made: NkiTensor = caches[key]
        return made
    target = ndarray((n, n), dtype) if dst is None else dst
    eye = dtypes.cast(np.eye(n, dtype=np.float32), target.dtype)
    isa.dma_copy(target, shared_constant(eye, dtype=target.dtype))
    if dst is None:
        caches[key] = target
    return target


def load(src: NkiTensor, dtype: dtypes.DType | None = None) -> NkiTensor:
    """A new SBUF tile with the contents of an HBM view."""
    shape = src.shape if src.ndim > 1 else (1, *src.shape)
    tile = ndarray(shape, src.dtype if dtype is None else dtype)
    isa.dma_copy(tile, src)
    return tile


def store(dst: NkiTensor, value: NkiTensor) -> None:
    """Write a tile to an HBM view."""
    if isinstance(value, NkiTensor) and value.buffer is psum:
        value = copy(value)
    isa.dma_copy(dst, value)


def load_transpose2d(src: NkiTensor, dtype: dtypes.DType | None = None) -> NkiTensor:
    """A new SBUF tile with a 2-D HBM view transposed."""
    if src.ndim != 2:
        raise NkiValidationError(f"load_transpose2d needs 2 dimensions, {src!r} has {src.ndim}.")
    turned = src.permute((1, 0))
    tile = ndarray(turned.shape, src.dtype if dtype is None else dtype)
    isa.dma_copy(tile, turned)
    return tile


def copy(x: NkiTensor, dtype: dtypes.DType | None = None) -> NkiTensor:
    """A new SBUF tile with the contents of a tile."""
    tile = ndarray(x.shape, x.dtype if dtype is None else dtype)
    isa.tensor_copy(tile, x)
    return tile


copy.nki_operator = "copy"  # type: ignore[attr-defined]


def is_hbm(buffer: Any) -> bool:
    """True for HBM, private or shared."""
    return not region(buffer).on_chip


def is_on_chip(buffer: Any) -> bool:
    """True for SBUF and PSUM."""
    return region(buffer).on_chip


def is_psum(buffer: Any) -> bool:
    """True for PSUM."""
    return region(buffer) is psum


def is_sbuf(buffer: Any) -> bool:
    """True for SBUF."""
    return region(buffer) is sbuf

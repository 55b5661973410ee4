"""The two roundings besides the exact one: at random, and kept in fp32 beside the memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nki import dtypes
from nki.program.tensor import NkiTensor

Array = npt.NDArray[Any]


def is_narrow(dtype: str) -> bool:
    """Whether engines lose bits of fp32 when they write this format."""
    row = dtypes.row(dtype)
    return row.kind == "float" and row.itemsize < 4 and dtype != "float8_e8m0fnu"


def stochastic(values: Array, dtype: str, random: np.random.Generator) -> Array:
    """Round to one of the two neighbours in `dtype`, the nearer the likelier: unbiased.

    Values beyond the largest finite number round as usual.
    """
    exact = values.astype(np.float32, copy=False)
    nearest = dtypes.cast(exact, dtype)
    codes = nearest.view(np.uint16 if nearest.dtype.itemsize == 2 else np.uint8)
    back = dtypes.to_float32(nearest, dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        # Codes count magnitudes; the other neighbour is one step towards the exact value.
        further = np.abs(exact) > np.abs(back)
        other_codes = np.where(further, codes + 1, codes - 1).astype(codes.dtype)
        other = dtypes.to_float32(other_codes.view(nearest.dtype), dtype)
        share = (exact - back) / (other - back)  # how far the exact value is from the nearest
        valid = np.isfinite(back) & np.isfinite(other) & (exact != back) & (share > 0) & (share < 1)
    take = valid & (random.random(exact.shape, dtype=np.float32) < share)
    return np.where(take, other_codes, codes).astype(codes.dtype).view(nearest.dtype)


class Kept:
    """The fp32 values of what was written in narrow formats, while the memory still shows them."""

    def __init__(self) -> None:
        self._values: dict[int, Array] = {}

    def store(self, tensor: NkiTensor, values: Array) -> None:
        """Remember the values that are written to a view."""
        view = self._view(tensor, make=True)
        if view is not None:
            view[...] = np.asarray(values, np.float32).reshape(tensor.shape)

    def load(self, tensor: NkiTensor, rounded: Array) -> Array:
        """The values of a view: remembered ones where they still round to what is in memory."""
        view = self._view(tensor, make=False)
        if view is None:
            return rounded
        again = dtypes.to_float32(
            dtypes.cast(np.ascontiguousarray(view), tensor.dtype), tensor.dtype
        )
        return np.where(again == rounded, view, rounded)

    def _view(self, tensor: NkiTensor, *, make: bool) -> Array | None:
        storage = tensor.storage
        if not is_narrow(tensor.dtype) or tensor.dtype != storage.dtype or tensor.is_indirect():
            return None
        if storage.index not in self._values:
            if not make:
                return None
            self._values[storage.index] = np.full(storage.elements, np.nan, np.float32)
        return np.ndarray(
            tensor.shape,
            np.float32,
            self._values[storage.index],
            tensor.offset * 4,
            [step * 4 for step in tensor.strides],
        )

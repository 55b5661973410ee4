"""Which elements of an allocation have been written; exact for static views."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from nki.program import layout
from nki.program.storage import Storage
from nki.program.tensor import NkiTensor


class Written:
    """The set of written elements of one allocation, as nothing, everything, or a bitmap."""

    __slots__ = ("bitmap", "everything", "storage")

    def __init__(self, storage: Storage, *, everything: bool = False) -> None:
        self.storage = storage
        self.everything = everything
        self.bitmap: npt.NDArray[np.bool_] | None = None

    def add(self, view: NkiTensor) -> None:
        """Note a write; a write whose place is unknown counts as everywhere."""
        if self.everything:
            return
        if view.is_indirect() or _covers(view, self.storage):
            self.everything = True
            self.bitmap = None
            return
        self._elements(view, create=True)[...] = True

    def remove(self, view: NkiTensor) -> None:
        """Forget a region."""
        if not self.everything and self.bitmap is None:
            return
        if view.is_indirect() or _covers(view, self.storage):
            self.everything = False
            self.bitmap = None
            return
        self._elements(view, create=True)[...] = False
        self.everything = False

    def state(self, view: NkiTensor) -> bool | None:
        """True if all of the view is written, False if none of it, None if some."""
        if self.everything:
            return True
        if self.bitmap is None:
            return False
        if view.is_indirect():
            return None if self.bitmap.any() else False
        elements = self._elements(view, create=False)
        if elements.all():
            return True
        return None if elements.any() else False

    def mask(self, view: NkiTensor) -> npt.NDArray[np.bool_]:
        """The view's written elements as an array of its shape."""
        return self._elements(view, create=True).copy()

    def _elements(self, view: NkiTensor, *, create: bool) -> npt.NDArray[Any]:
        if self.bitmap is None:
            assert create
            self.bitmap = np.full(self.storage.elements, self.everything)
        return _strided(self.bitmap, view, self.storage)


def _covers(view: NkiTensor, storage: Storage) -> bool:
    return (
        view.offset == 0
        and view.size * view.itemsize == storage.num_bytes
        and layout.is_dense(view.shape, view.strides)
    )


def _strided(bitmap: npt.NDArray[np.bool_], view: NkiTensor, storage: Storage) -> npt.NDArray[Any]:
    """The bitmap's elements under a view; a reinterpreting view covers whole elements."""
    offset, shape, strides = view.offset, view.shape, view.strides
    if view.itemsize != storage.itemsize:
        ratio_up = view.itemsize / storage.itemsize
        if view.strides[-1] == 1 and view.itemsize > storage.itemsize:
            factor = int(ratio_up)
            shape = (*shape[:-1], shape[-1] * factor)
            strides = (*(s * factor for s in strides[:-1]), 1)
            offset *= factor
        else:  # smaller elements: every container that the view touches
            first = math.floor(offset * ratio_up)
            last = math.ceil((offset + layout.span(shape, strides) + 1) * ratio_up)
            return bitmap[first:last]
    return np.lib.stride_tricks.as_strided(bitmap[offset:], shape, strides)

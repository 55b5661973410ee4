"""`nki.tensor`: the tensor class, as some tools import it."""

from __future__ import annotations

from nki.program.tensor import DynamicOffset, NkiTensor

__all__ = ["DynamicOffset", "NkiTensor"]

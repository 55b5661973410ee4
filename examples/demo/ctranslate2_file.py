"""Reads the arrays of a CTranslate2 `model.bin`; knows nothing of any model."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from .errors import DemoError

VERSION = 6
# The file stores the position of the dtype in this list. bfloat16 (5) has no NumPy dtype.
_DTYPES = (np.float32, np.int8, np.int16, np.int32, np.float16)


class _Cursor:
    """Walks through little-endian bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.offset = 0

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from("<" + form, self.data, self.offset)
        self.offset += struct.calcsize("<" + form)
        return int(value)

    def text(self) -> str:
        raw = self.take(self.number("H"))
        return raw[:-1].decode("utf-8")  # the last byte is a NUL

    def take(self, num_bytes: int) -> bytes:
        taken = self.data[self.offset : self.offset + num_bytes]
        if len(taken) != num_bytes:
            raise DemoError(
                f"model.bin ends at byte {len(self.data)}, but an array needs the bytes up to "
                f"{self.offset + num_bytes}. Delete the downloads and run the demo again."
            )
        self.offset += num_bytes
        return taken


def read_arrays(data: bytes) -> dict[str, NDArray[np.generic]]:
    """Every array of the file by name; an alias names the same array again.

    The layout is: version, specification name and revision; the number of arrays; for each its
    name, rank, extents, dtype, size and bytes; then pairs of alias and name.
    """
    cursor = _Cursor(data)
    version = cursor.number("I")
    if version != VERSION:
        raise DemoError(f"model.bin has layout version {version}; this reader knows {VERSION}.")
    cursor.text()
    cursor.number("I")
    arrays: dict[str, NDArray[np.generic]] = {}
    for _ in range(cursor.number("I")):
        name = cursor.text()
        shape = [cursor.number("I") for _ in range(cursor.number("B"))]
        dtype = cursor.number("B")
        if dtype >= len(_DTYPES):
            raise DemoError(f"Array {name} of model.bin has the unknown dtype number {dtype}.")
        contents = cursor.take(cursor.number("I"))
        arrays[name] = np.frombuffer(contents, dtype=_DTYPES[dtype]).reshape(shape)
    for _ in range(cursor.number("I")):
        alias = cursor.text()
        arrays[alias] = arrays[cursor.text()]
    return arrays

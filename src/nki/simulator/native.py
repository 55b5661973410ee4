"""The C++ core, if it was built: library, BLAS, and the call that runs a stretch of a program."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from nki import settings

_VERSION = 1
_PATTERN = "_replay*.so"
_SGEMM = "scipy_cblas_sgemm64_"

Run = Callable[..., int]


@functools.cache
def library() -> Any:
    """The loaded core, None if there is none."""
    for path in sorted(Path(__file__).resolve().parent.parent.glob(_PATTERN)):
        core = ctypes.CDLL(str(path))
        core.neuron_nki_version.restype = ctypes.c_int64
        if core.neuron_nki_version() != _VERSION:
            continue
        core.neuron_nki_run.restype = ctypes.c_int64
        core.neuron_nki_run.argtypes = [
            ctypes.c_void_p,
            ctypes.c_int64,
            ctypes.c_int64,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_void_p,
        ]
        return core
    return None


@functools.cache
def sgemm() -> int | None:
    """Address of the sgemm in the OpenBLAS that NumPy brings along; None where it has none."""
    for folder in ("numpy.libs", "numpy/.dylibs"):
        root = Path(np.__file__).resolve().parent.parent / folder
        for path in root.glob("*openblas64*"):
            blas = ctypes.CDLL(str(path))
            function = getattr(blas, _SGEMM, None)
            if function is not None:
                return ctypes.cast(function, ctypes.c_void_p).value
    return None


def available() -> bool:
    """True if programs are replayed by the core."""
    return settings.enabled("NKI_NATIVE_REPLAY") and library() is not None

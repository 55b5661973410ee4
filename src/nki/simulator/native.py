"""The C++ core, if it was built: library, BLAS, and the call that runs a stretch of a program."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
def _blas() -> Any:
    """The OpenBLAS that NumPy brings along; None where it has none."""
    for folder in ("numpy.libs", "numpy/.dylibs"):
        root = Path(np.__file__).resolve().parent.parent / folder
        for path in root.glob("*openblas64*"):
            return ctypes.CDLL(str(path))
    return None


@functools.cache
def sgemm() -> int | None:
    """Address of NumPy's sgemm."""
    function = getattr(_blas(), _SGEMM, None)
    return None if function is None else ctypes.cast(function, ctypes.c_void_p).value


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Products of tiles are too small to share among threads; waiting for them costs more."""
    set_threads = getattr(_blas(), "openblas_set_num_threads_local", None)
    if set_threads is None:
        yield
        return
    before = set_threads(1)
    try:
        yield
    finally:
        set_threads(before)


def available() -> bool:
    """True if programs are replayed by the core, which knows the exact rounding only."""
    return (
        settings.enabled("NKI_NATIVE_REPLAY")
        and settings.enabled("NKI_PRECISE_FP")
        and not settings.enabled("NEURON_RT_STOCHASTIC_ROUNDING_EN")
        and library() is not None
    )

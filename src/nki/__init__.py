"""NKI: kernels on tiles, specialised, checked, simulated and priced. No torch in this package."""

from __future__ import annotations

from nki import collectives, compiler, dtype, isa, language, tensor, typing
from nki.advice import Advice, lint
from nki.benchmark import benchmark, modelled_seconds, profile
from nki.errors import NkiError, NkiValidationError, NkiWarning
from nki.jit import Kernel, jit, simulate

cpu_simulate = simulate

__all__ = [
    "Advice",
    "Kernel",
    "NkiError",
    "NkiValidationError",
    "NkiWarning",
    "benchmark",
    "collectives",
    "compiler",
    "cpu_simulate",
    "dtype",
    "isa",
    "jit",
    "language",
    "lint",
    "modelled_seconds",
    "profile",
    "simulate",
    "tensor",
    "typing",
]

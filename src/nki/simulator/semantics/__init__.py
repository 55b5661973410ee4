"""What each instruction does to a machine, one file for each engine."""

from __future__ import annotations

from nki.simulator.semantics import dma, gpsimd, random, reduce, scalar, sync, tensor, vector
from nki.simulator.semantics.table import SEMANTICS, Semantics

__all__ = [
    "SEMANTICS",
    "Semantics",
    "dma",
    "gpsimd",
    "random",
    "reduce",
    "scalar",
    "sync",
    "tensor",
    "vector",
]

"""Legality beyond the rows of `rules`: a function for each instruction, a file for each kind."""

from __future__ import annotations

from nki.program.checks import alu, dma, special, tensor
from nki.program.checks.table import CHECKS

__all__ = ["CHECKS", "alu", "dma", "special", "tensor"]

"""How far one tensor is from another."""

from __future__ import annotations

from torch import Tensor
from torch.linalg import vector_norm


def relative_error(found: Tensor, wanted: Tensor) -> float:
    """The norm of the difference divided by the norm of the wanted values."""
    return float(vector_norm(found - wanted) / vector_norm(wanted))

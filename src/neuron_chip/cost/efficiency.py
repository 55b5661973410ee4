"""How well a time uses the chip: model FLOPs and HBM bandwidth utilisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuron_chip.cost.tensor import matmul_passes

if TYPE_CHECKING:
    from neuron_chip.parts import Chip
    from neuron_chip.work import Work


def mfu(work: Work, seconds: float, chip: Chip, *, lnc: int | None = None) -> float:
    """Share of the tensor engines' peak that useful products take.

    Each dtype counts against its own peak; element-wise operations do not count.
    """
    if seconds <= 0:
        return 0.0
    needed = sum(
        matmul_passes(kind, chip) * count for kind, count in work.flops.items() if kind != "vector"
    )
    return needed / (seconds * chip.peak_flops_per_second(lnc=lnc))


def mbu(work: Work, seconds: float, chip: Chip, *, lnc: int | None = None) -> float:
    """Share of the nominal HBM rate that the traffic takes."""
    if seconds <= 0:
        return 0.0
    return work.hbm_bytes / (seconds * chip.hbm_bytes_per_second_per_logical_core(lnc=lnc))

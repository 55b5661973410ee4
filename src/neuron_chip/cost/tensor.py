"""Tensor engine: passes per dtype, utilisation by tile shape, warm-up. No other engine here."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neuron_chip.parts import Chip


class UnsupportedOnChipError(ValueError):
    """The chip has no unit for what was asked."""


def matmul_passes(matmul_class: str, chip: Chip) -> float:
    """Cycles per column and 128 rows of contraction; FP8 and MX take more rows per pass."""
    tensor = chip.tensor
    if matmul_class == "fp32":
        return float(tensor.fp32_passes)
    if matmul_class == "bf16":
        return 1.0
    if matmul_class == "fp8":
        return tensor.rows / tensor.fp8_rows
    if matmul_class == "mx":
        if tensor.mx_rows is None:
            raise UnsupportedOnChipError(
                f"{chip.name} has no MX matrix unit; trn3 has. Use float8_e5m2 or bfloat16."
            )
        return tensor.rows / tensor.mx_rows
    raise ValueError(f"Matmul class {matmul_class!r} is not fp32, bf16, fp8 or mx.")


def tensor_cycles(matmul_class: str, chip: Chip, *, columns: float, instructions: float) -> float:
    """Engine cycles of `instructions` that stream `columns` in all.

    Each instruction occupies the array for at least the issue interval, and a stationary load
    between two of them shows as a short gap.
    """
    tensor = chip.tensor
    streamed = matmul_passes(matmul_class, chip) * columns
    return max(streamed, tensor.min_issue_cycles * instructions) + (
        tensor.issue_gap_cycles * instructions
    )


def matmul_utilization(m: int, k: int, n: int, matmul_class: str, chip: Chip) -> float:
    """Useful share of the array's peak for an m x k x n product cut into full-size tiles."""
    tensor = chip.tensor
    rows = tensor.rows / matmul_passes(matmul_class, chip)
    if matmul_class == "fp32":
        rows = tensor.rows
    k_tiles = math.ceil(k / rows)
    m_tiles = math.ceil(m / tensor.columns)
    n_tiles = math.ceil(n / tensor.max_moving_free)
    instructions = k_tiles * m_tiles * n_tiles
    slices = k_tiles * rows / tensor.rows
    cycles = tensor_cycles(
        matmul_class, chip, columns=slices * m_tiles * n, instructions=instructions
    )
    ideal = matmul_passes(matmul_class, chip) * m * k * n / (tensor.rows * tensor.columns)
    return ideal / cycles


def warm_up_seconds(bursts: float, busy_seconds: float, chip: Chip) -> float:
    """Time lost because the engine starts each burst at part of its speed."""
    throttle = chip.throttle
    if throttle is None or bursts <= 0:
        return 0.0
    window = throttle.warm_up_us * 1e-6
    slow = min(window, busy_seconds / bursts / throttle.start_fraction)
    return bursts * slow * (1.0 - throttle.start_fraction)

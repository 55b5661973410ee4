"""Vector, scalar and gpsimd engines: time of instruction streams. No tensor engine, no DMA."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neuron_chip.parts import Chip, LaneEngine

_MODES = {"1x": 1, "2x": 2, "4x": 4}


def lane_engine(name: str, chip: Chip) -> LaneEngine:
    """The chip's engine of that name."""
    if name not in ("vector", "scalar", "gpsimd"):
        raise ValueError(f"{name!r} is not a lane engine; there are vector, scalar and gpsimd.")
    engine: LaneEngine = getattr(chip, name)
    return engine


def speed(engine: LaneEngine, rate: str) -> int:
    """Elements per lane and cycle in a performance mode, as far as this engine has it."""
    mode = _MODES.get(rate)
    if mode is None:
        raise ValueError(f"Performance mode {rate!r} is not one of {', '.join(_MODES)}.")
    return min(mode, engine.max_fast_elements_per_lane_cycle)


def lane_seconds(
    engine: LaneEngine, *, rate: str, steps: float, instructions: float, dependent: float
) -> float:
    """Time of `instructions` over `steps` elements per lane in all.

    Instructions that wait for their predecessor pay the fixed time; the others overlap it with
    the elements and pay the issue interval at least.
    """
    cycles = max(steps / speed(engine, rate), engine.min_issue_cycles * instructions)
    return cycles / (engine.clock_ghz * 1e9) + dependent * engine.fixed_ns * 1e-9

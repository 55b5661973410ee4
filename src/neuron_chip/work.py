"""Work: what a piece of computation does, counted. Prices are in `cost`, no chip is needed here.

Records add up: the work of a step is the sum of the work of its operations. The counts are those
of one logical core; `cost` spreads them over its physical cores.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from neuron_chip.collectives import Collective


class Lane(NamedTuple):
    """What kind of engine time: which engine, and what decides its rate."""

    engine: str
    """"tensor", "vector", "scalar" or "gpsimd"."""
    rate: str
    """Tensor engine: the dtype's matmul class. Others: "1x", "2x" or "4x" performance mode."""


class Activity(NamedTuple):
    """An amount of engine time."""

    instructions: float
    steps: float
    """Tensor engine: columns streamed at 128 rows each. Others: elements per lane at "1x"."""
    dependent: float = 0.0
    """Those instructions that wait for the one before and so pay the engine's fixed time."""

    def __add__(self, other: Activity) -> Activity:  # type: ignore[override]
        return Activity(*(a + b for a, b in zip(self, other, strict=True)))

    def scaled(self, factor: float) -> Activity:
        """The same activity `factor` times."""
        return Activity(*(factor * count for count in self))


@dataclass(frozen=True, kw_only=True)
class Work:
    """Additive counts of one operation, kernel, graph or step."""

    lanes: Mapping[Lane, Activity] = field(default_factory=dict)
    flops: Mapping[str, float] = field(default_factory=dict)
    """Useful operations by matmul class; transposes and padding are not useful."""
    hbm_read_bytes: float = 0.0
    hbm_write_bytes: float = 0.0
    spill_bytes: float = 0.0
    """Part of the HBM traffic that exists only because SBUF was too small."""
    dma_descriptors: float = 0.0
    """Contiguous pieces that the DMA engines move."""
    software_descriptors: float = 0.0
    """Those of them that GpSimd writes at run time: gather and scatter."""
    dma_transpose_bytes: float = 0.0
    host_bytes: float = 0.0
    """Bytes over PCIe, either way."""
    table_loads: float = 0.0
    """Switches of the scalar engine's function table."""
    tensor_bursts: float = 0.0
    """Times the tensor engine starts from idle."""
    launches: float = 0.0
    """Operations or graphs that the host starts."""
    read_backs: float = 0.0
    """Times the host waits for a result before it goes on."""
    collectives: Mapping[Collective, float] = field(default_factory=dict)
    default_rule: bool = False
    """No rule was written for the operation: priced as one pass over its bytes."""

    def __add__(self, other: Work) -> Work:
        return total((self, other))

    def __mul__(self, factor: float) -> Work:
        """The same work `factor` times."""
        if factor < 0:
            raise ValueError(f"Work cannot be repeated {factor} times; the factor must be >= 0.")
        scalars = {name: factor * getattr(self, name) for name in _SCALARS}
        return Work(
            lanes={lane: activity.scaled(factor) for lane, activity in self.lanes.items()},
            flops={dtype: factor * count for dtype, count in self.flops.items()},
            collectives={call: factor * count for call, count in self.collectives.items()},
            default_rule=self.default_rule,
            **scalars,
        )

    __rmul__ = __mul__

    @property
    def hbm_bytes(self) -> float:
        """HBM traffic both ways."""
        return self.hbm_read_bytes + self.hbm_write_bytes

    @property
    def total_flops(self) -> float:
        """Useful operations of all dtypes."""
        return sum(self.flops.values())

    @property
    def instructions(self) -> float:
        """Engine instructions, without DMA."""
        return sum(activity.instructions for activity in self.lanes.values())


_SCALARS = tuple(
    f.name for f in fields(Work) if f.name not in ("lanes", "flops", "collectives", "default_rule")
)


def total(parts: Iterable[Work]) -> Work:
    """The sum of many records, in one pass."""
    lanes: dict[Lane, Activity] = {}
    flops: dict[str, float] = {}
    collectives: dict[Collective, float] = {}
    scalars = dict.fromkeys(_SCALARS, 0.0)
    default_rule = False
    for part in parts:
        for lane, activity in part.lanes.items():
            known = lanes.get(lane)
            lanes[lane] = activity if known is None else known + activity
        for dtype, count in part.flops.items():
            flops[dtype] = flops.get(dtype, 0.0) + count
        for call, count in part.collectives.items():
            collectives[call] = collectives.get(call, 0.0) + count
        for name in _SCALARS:
            scalars[name] += getattr(part, name)
        default_rule = default_rule or part.default_rule
    return Work(
        lanes=lanes,
        flops=flops,
        collectives=collectives,
        default_rule=default_rule,
        **scalars,
    )

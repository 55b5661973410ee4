"""What a plan says, as plain data."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Self


@dataclass(frozen=True, kw_only=True)
class PlanResult:
    """One step of a program, as one rank of an instance type sees it."""

    instance: str
    software: str
    world_size: int
    rank: int
    num_instances: int
    num_cores: int
    """Logical cores of all instances."""
    found_by: str
    """"marked", "optimizer" or "module call": how the step was found."""
    unit: str
    units: float
    """Of all ranks together, in one step."""
    step_seconds: float
    low_seconds: float
    high_seconds: float
    default_share: float
    mfu: float
    mbu: float
    hbm_peak_bytes: int
    hbm_capacity_bytes: int
    hbm_by_kind: dict[str, int]
    alive_at_peak: list[dict[str, Any]]
    engine_seconds: dict[str, float]
    op_seconds: dict[str, float]
    module_seconds: dict[str, float]
    line_seconds: dict[str, float]
    default_ops: dict[str, float]
    usd_per_hour: float | None
    """Of all instances; None: nobody quotes a price."""
    price_source: str
    host_seconds: float
    """What planning took here."""

    @property
    def idle_cores(self) -> int:
        """Cores that are paid for and have no rank."""
        return self.num_cores - self.world_size

    @property
    def fits(self) -> bool:
        """Whether the step fits the HBM of a core."""
        return self.hbm_peak_bytes <= self.hbm_capacity_bytes

    @property
    def units_per_second(self) -> float:
        """Throughput of all ranks."""
        return self.units / self.step_seconds if self.step_seconds else 0.0

    @property
    def usd_per_million_units(self) -> float | None:
        """Money for a million units at this throughput."""
        if self.usd_per_hour is None or not self.units_per_second:
            return None
        return 1e6 * self.usd_per_hour / 3600 / self.units_per_second

    def share(self, engine: str) -> float:
        """Busy share of an engine in the step."""
        return (
            self.engine_seconds.get(engine, 0.0) / self.step_seconds if self.step_seconds else 0.0
        )


@dataclass(frozen=True, kw_only=True)
class GpuResult:
    """A roofline of the same work on a GPU instance: a best case."""

    instance: str
    num_gpus: int
    step_seconds: float
    units_per_second: float
    usd_per_hour: float | None
    usd_per_million_units: float | None
    fits: bool
    """Whether the memory of all ranks fits that of the GPUs."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The results of a program on each instance asked for."""

    script: str
    arguments: list[str]
    results: list[PlanResult]
    gpus: list[GpuResult] = field(default_factory=list)

    def to_json(self) -> str:
        """The plan as JSON; `from_json` reads it."""
        return json.dumps(asdict(self), indent=2)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        data = json.loads(text)
        return cls(
            script=data["script"],
            arguments=data["arguments"],
            results=[PlanResult(**row) for row in data["results"]],
            gpus=[GpuResult(**row) for row in data["gpus"]],
        )

    def __str__(self) -> str:
        """The plan as text."""
        from torch_neuronx.planner.text import plan_text

        return plan_text(self)

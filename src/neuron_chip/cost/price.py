"""Work to time: the floors of every engine, how they overlap, and a range. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from neuron_chip.collectives import collective_time
from neuron_chip.cost.dma import dma_seconds, hbm_seconds
from neuron_chip.cost.lanes import lane_engine, lane_seconds
from neuron_chip.cost.tensor import tensor_cycles, warm_up_seconds
from neuron_chip.stacks import Stack, stack

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from neuron_chip.parts import Chip
    from neuron_chip.work import Work

# The rates and fixed times behind a price are known to about a fifth: with this margin the range
# holds nine of ten published figures (docs/accuracy.md).
UNCERTAINTY = 0.2


@dataclass(frozen=True, kw_only=True)
class Time:
    """Modelled time of some work: an estimate inside a range, and where it goes."""

    seconds: float
    low_seconds: float
    """Everything hides behind the longest engine or collective, and rates are a fifth better."""
    high_seconds: float
    """Nothing overlaps, and rates are a fifth worse."""
    busy_seconds: Mapping[str, float] = field(default_factory=dict)
    """Busy time by "tensor", "vector", "scalar", "gpsimd", "dma", "hbm", "collectives", "host",
    "launch" and "read back"; they overlap, so they add up to more than `seconds`."""
    default_seconds: float = 0.0
    """Part of `seconds` that rests on default rules."""

    def __add__(self, other: Time) -> Time:
        busy = dict(self.busy_seconds)
        for engine, seconds in other.busy_seconds.items():
            busy[engine] = busy.get(engine, 0.0) + seconds
        return Time(
            seconds=self.seconds + other.seconds,
            low_seconds=self.low_seconds + other.low_seconds,
            high_seconds=self.high_seconds + other.high_seconds,
            busy_seconds=busy,
            default_seconds=self.default_seconds + other.default_seconds,
        )

    @property
    def default_share(self) -> float:
        """Share of the time that rests on default rules."""
        return self.default_seconds / self.seconds if self.seconds else 0.0

    @property
    def bound(self) -> str:
        """The engine that is busy longest."""
        return max(self.busy_seconds, key=lambda name: self.busy_seconds[name], default="nothing")


NO_TIME = Time(seconds=0.0, low_seconds=0.0, high_seconds=0.0)


def engine_floors(work: Work, chip: Chip, *, lnc: int | None = None) -> dict[str, float]:
    """Least busy seconds of each engine of one logical core; the work is split over its cores."""
    cores = chip.check_lnc(lnc)
    floors = dict.fromkeys(("tensor", "vector", "scalar", "gpsimd"), 0.0)
    tensor_hz = chip.tensor.clock_ghz * 1e9
    for lane, activity in work.lanes.items():
        if lane.engine == "tensor":
            cycles = tensor_cycles(
                lane.rate, chip, columns=activity.steps, instructions=activity.instructions
            )
            floors["tensor"] += cycles / cores / tensor_hz
        else:
            engine = lane_engine(lane.engine, chip)
            floors[lane.engine] += (
                lane_seconds(
                    engine,
                    rate=lane.rate,
                    steps=activity.steps,
                    instructions=activity.instructions,
                    dependent=activity.dependent,
                )
                / cores
            )
    floors["tensor"] += warm_up_seconds(work.tensor_bursts, floors["tensor"], chip)
    floors["scalar"] += work.table_loads * chip.activation_table_load_ns * 1e-9
    floors["dma"] = dma_seconds(
        chip,
        num_bytes=work.hbm_bytes,
        descriptors=work.dma_descriptors,
        software_descriptors=work.software_descriptors,
        transpose_bytes=work.dma_transpose_bytes,
        cores=cores,
    )
    floors["hbm"] = hbm_seconds(chip, num_bytes=work.hbm_bytes, lnc=lnc)
    return floors


def collective_seconds(work: Work, chip: Chip) -> float:
    """Time of all collectives, one after the other."""
    return sum(
        count * collective_time(call, chip).total_us * 1e-6
        for call, count in work.collectives.items()
    )


def price(
    work: Work,
    chip: Chip,
    *,
    lnc: int | None = None,
    software: str | Stack = "device",
    exposed_share: float | None = None,
    collective_overlap: float = 0.0,
    busy_neighbours: bool = False,
) -> Time:
    """Time of `work` on one logical core.

    Args:
        exposed_share: how much of the shorter engines' time shows; None takes the stack's.
        collective_overlap: share of the collectives' time that hides behind computation.
        busy_neighbours: the other logical cores of the chip launch and copy as well.
    """
    starts = stack(software) if isinstance(software, str) else software
    if exposed_share is None:
        exposed_share = starts.exposed_share
    if not 0.0 <= exposed_share <= 1.0 or not 0.0 <= collective_overlap <= 1.0:
        raise ValueError(
            f"exposed_share={exposed_share} and collective_overlap={collective_overlap} are "
            "shares; both must lie between 0 and 1."
        )
    busy = engine_floors(work, chip, lnc=lnc)
    # DMA engines and HBM are two ends of one stream: the slower end is its time.
    stream = max(busy["dma"], busy["hbm"])
    parts = [busy["tensor"], busy["vector"], busy["scalar"], busy["gpsimd"], stream]
    longest, everything = max(parts), sum(parts)
    device = longest + exposed_share * (everything - longest)

    busy["collectives"] = collective_seconds(work, chip)
    host_rate = chip.host_bytes_per_second
    if busy_neighbours:
        host_rate = min(host_rate, chip.host_bytes_per_second_of_chip / chip.logical_cores(lnc=lnc))
    busy["host"] = work.host_bytes / host_rate
    launch_us = starts.launch_us
    if busy_neighbours and starts.busy_neighbour_launch_us is not None:
        launch_us = max(launch_us, starts.busy_neighbour_launch_us)
    busy["launch"] = work.launches * launch_us * 1e-6
    busy["read back"] = work.read_backs * starts.read_back_us * 1e-6

    hidden = min(collective_overlap * busy["collectives"], device)
    fixed = busy["launch"] + busy["read back"] + busy["host"]
    seconds = fixed + device + busy["collectives"] - hidden
    return Time(
        seconds=seconds,
        low_seconds=(1 - UNCERTAINTY) * min(seconds, fixed + max(longest, busy["collectives"])),
        high_seconds=(1 + UNCERTAINTY) * (fixed + everything + busy["collectives"]),
        busy_seconds={name: value for name, value in busy.items() if value > 0},
        default_seconds=seconds if work.default_rule else 0.0,
    )


def price_all(
    works: Iterable[Work], chip: Chip, *, lnc: int | None = None, software: str | Stack = "device"
) -> Time:
    """Time of operations that run one after the other, each priced by itself."""
    result = NO_TIME
    for work in works:
        result += price(work, chip, lnc=lnc, software=software)
    return result

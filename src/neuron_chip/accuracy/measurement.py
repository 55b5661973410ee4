"""One published figure and the work that the model prices for it. No figures live here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from neuron_chip import sources
from neuron_chip.chips import TRN2
from neuron_chip.cost import NO_TIME, Time, price
from neuron_chip.parts import Chip
from neuron_chip.work import Work, total

if TYPE_CHECKING:
    from collections.abc import Sequence

GROUPS = ("GEMM", "kernel", "NKI kernel", "micro", "launch", "collective", "model")


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """A figure somebody measured and published, and its model.

    `work` has a phase for each part that waits for the one before. Parameters are chip and stack
    rows; nothing here adjusts the model to a figure.
    """

    name: str
    group: str
    seconds: float
    source: str
    work: tuple[Work, ...] = ()
    modelled_seconds: float | None = None
    """For micro figures that a cost function gives directly, without work."""
    chip: Chip = TRN2
    lnc: int | None = None
    software: str = "device"
    exposed_share: float | None = None
    """None takes the stack's."""
    busy_neighbours: bool = False
    guide: bool = False
    """The figure (or one of its family) set a general parameter, so it proves little."""
    not_counted: str = ""
    """Why the figure is listed but not part of the statistics."""

    def __post_init__(self) -> None:
        sources.check(self.source)
        assert self.group in GROUPS, self.name
        assert self.seconds > 0, self.name
        assert self.work or self.modelled_seconds is not None, self.name

    def modelled(self) -> Time:
        """The model's time for the same work."""
        if self.modelled_seconds is not None:
            value = self.modelled_seconds
            return Time(seconds=value, low_seconds=value, high_seconds=value)
        result = NO_TIME
        for phase in self.work:
            result += price(
                phase,
                self.chip,
                lnc=self.lnc,
                software=self.software,
                exposed_share=self.exposed_share,
                busy_neighbours=self.busy_neighbours,
            )
        return result

    @property
    def error(self) -> float:
        """Relative error, positive when the model is slower than the chip was."""
        return self.modelled().seconds / self.seconds - 1.0


def launched(*phases: Work, launches: float = 1.0) -> tuple[Work, ...]:
    """One operation or graph: the phases and the start."""
    return (*phases[:-1], total([phases[-1], Work(launches=launches)]))


def microseconds(value: float) -> float:
    """Seconds."""
    return value * 1e-6


def milliseconds(value: float) -> float:
    """Seconds."""
    return value * 1e-3


def seconds_at(num_bytes: float, gigabytes_per_second: float) -> float:
    """Seconds of a figure that was published as a rate."""
    return num_bytes / (gigabytes_per_second * 1e9)


def median(values: Sequence[float]) -> float:
    """The middle value."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie, by linear interpolation."""
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])

"""What a job hands to the report: rates, agreements with their bounds, and tables to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Rate:
    """How much work a place did, and in how many seconds."""

    place: str
    amount: float
    seconds: float

    @property
    def per_second(self) -> float:
        """The work of one second."""
        return self.amount / self.seconds


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """A distance from the CPU in fp32: the device's, and the CPU's at the device's dtype.

    The second says how much of the first is owed to the dtype alone. `bound` is what the device
    may not exceed.
    """

    what: str
    device: float
    cpu: float | None
    bound: float
    form: str

    @property
    def holds(self) -> bool:
        """Whether the device is within the bound; NaN is not."""
        return self.device <= self.bound


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of text under a title."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """One job: its name, its unit of work, the rates, how well values agree, what it produced.

    `curves` are values by step and place; only the JSON file has them.
    """

    name: str
    model: str
    unit: str
    device: Rate
    cpu: Rate
    reference: Rate
    agreements: Sequence[Agreement]
    tables: Sequence[Table]
    chart: str = ""
    curves: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether each agreement is within its bound."""
        return all(agreement.holds for agreement in self.agreements)

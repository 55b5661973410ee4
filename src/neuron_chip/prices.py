"""What instances cost, one row per quoted price, and a TOML file that overrides them.

Prices change and capacity is often refused: each row says where and when it was seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# From what a planner would pay first to what it can hope for.
MARKETS = ("on_demand", "capacity_block", "spot", "user")


class NoPriceError(ValueError):
    """No row quotes the price that was asked for."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """One quotation for one instance, in US dollars per hour, Linux."""

    instance: str
    usd_per_hour: float
    market: str
    seen: str
    """Year and month of the quotation."""
    source: str

    def __post_init__(self) -> None:
        if self.market not in MARKETS:
            raise ValueError(
                f"Market {self.market!r} of {self.instance}: use one of {', '.join(MARKETS)}."
            )
        if not self.usd_per_hour > 0:
            raise ValueError(
                f"{self.instance} at {self.usd_per_hour} USD per hour: a price must be positive."
            )


_EC2 = "Amazon EC2 on-demand price list"
_SPOT = "Amazon EC2 spot price history"
_BLOCK = "Amazon EC2 Capacity Blocks for ML"


def _price(instance: str, usd: float, market: str, seen: str, source: str) -> Price:
    return Price(instance=instance, usd_per_hour=usd, market=market, seen=seen, source=source)


PRICES: tuple[Price, ...] = (
    # trn2, trn2u and trn3 have no published on-demand price.
    _price("trn2.3xlarge", 2.235, "capacity_block", "2026-10", f"{_BLOCK}, ap-southeast-4"),
    _price("trn2.3xlarge", 2.27, "spot", "2026-10", f"{_SPOT}, ap-southeast-4"),
    _price("trn2.48xlarge", 35.76, "capacity_block", "2026-10", f"{_BLOCK}, ap-south-2, 24 h"),
    _price("trn2.48xlarge", 14.56, "spot", "2026-10", f"{_SPOT}, us-east-2"),
    _price("trn1.2xlarge", 1.34375, "on_demand", "2026-10", _EC2),
    _price("trn1.2xlarge", 0.134, "spot", "2026-10", _SPOT),
    _price("trn1.32xlarge", 21.50, "on_demand", "2026-10", _EC2),
    _price("trn1.32xlarge", 15.49, "capacity_block", "2025-01", _BLOCK),
    _price("trn1.32xlarge", 2.15, "spot", "2026-10", _SPOT),
    _price("inf2.48xlarge", 12.98127, "on_demand", "2026-10", _EC2),
    _price("inf2.48xlarge", 1.298, "spot", "2026-10", _SPOT),
    _price("p5.4xlarge", 6.88, "on_demand", "2026-09", _EC2),
    _price("p5.4xlarge", 4.326, "capacity_block", "2026-09", _BLOCK),
    _price("p5.48xlarge", 55.04, "on_demand", "2025-06", _EC2),
    _price("p5.48xlarge", 34.608, "capacity_block", "2026-09", "eight times p5.4xlarge's block"),
    _price("p5en.48xlarge", 63.296, "on_demand", "2025-06", _EC2),
    _price("p5en.48xlarge", 43.26, "capacity_block", "2025-01", f"{_BLOCK}, us-east-2"),
    _price("p6-b200.48xlarge", 113.9328, "on_demand", "2026-10", _EC2),
    _price("p4d.24xlarge", 21.957642, "on_demand", "2026-10", _EC2),
    _price("p4d.24xlarge", 14.75, "capacity_block", "2025-01", _BLOCK),
    _price("p4de.24xlarge", 27.44705, "on_demand", "2026-10", _EC2),
    _price("g6e.xlarge", 1.861, "on_demand", "2026-10", _EC2),
    _price("g6e.2xlarge", 2.242, "on_demand", "2026-10", _EC2),
    _price("g6e.4xlarge", 3.004, "on_demand", "2026-10", _EC2),
    _price("g6e.8xlarge", 4.529, "on_demand", "2026-10", _EC2),
    _price("g6e.12xlarge", 10.493, "on_demand", "2026-10", _EC2),
    _price("g6e.16xlarge", 7.577, "on_demand", "2026-10", _EC2),
    _price("g6e.24xlarge", 15.066, "on_demand", "2026-10", _EC2),
    _price("g6e.48xlarge", 30.131, "on_demand", "2026-10", _EC2),
    _price("g6.xlarge", 0.8048, "on_demand", "2026-10", _EC2),
    _price("g6.4xlarge", 1.3232, "on_demand", "2026-10", _EC2),
    _price("g5.xlarge", 1.006, "on_demand", "2026-10", _EC2),
)


def quotations(instance: str, *, table: Iterable[Price] = PRICES) -> tuple[Price, ...]:
    """All quotations for an instance; none at all is an empty tuple, not zero."""
    return tuple(row for row in table if row.instance == instance)


def price_of(instance: str, *, market: str | None = None, table: Iterable[Price] = PRICES) -> Price:
    """The quotation to use: the user's own, else `market`, else the first of `MARKETS`.

    Raises:
        NoPriceError: nobody quotes it; the message says how to state a price.
    """
    found = quotations(instance, table=tuple(table))
    wanted = ("user", market) if market else ("user", *MARKETS)
    for each in wanted:
        for row in found:
            if row.market == each:
                return row
    offered = ", ".join(row.market for row in found) or "no market"
    raise NoPriceError(
        f"No {market or 'public'} price is known for {instance} (known: {offered}). State yours "
        f'in a TOML file: ["{instance}"] usd_per_hour = 10.0'
    )


def with_overrides(path: Path) -> tuple[Price, ...]:
    """The price table with the entries of a TOML file before it.

    The file has one table per instance with `usd_per_hour`, and optionally `market`, `seen` and
    `source`.
    """
    import tomllib

    with path.open("rb") as file:
        content = tomllib.load(file)
    own = []
    for instance, entry in _entries(content):
        if "usd_per_hour" not in entry:
            raise ValueError(
                f'{path}: ["{instance}"] has no usd_per_hour. Write usd_per_hour = 2.5.'
            )
        own.append(
            Price(
                instance=instance,
                usd_per_hour=float(entry["usd_per_hour"]),
                market=str(entry.get("market", "user")),
                seen=str(entry.get("seen", "user")),
                source=str(entry.get("source", path.name)),
            )
        )
    return (*own, *PRICES)


def _entries(content: dict[str, object], prefix: str = "") -> list[tuple[str, dict[str, float]]]:
    """Tables that hold a price; unquoted names with dots arrive nested."""
    found: list[tuple[str, dict[str, float]]] = []
    for key, value in content.items():
        if not isinstance(value, dict):
            raise ValueError(
                f"{prefix}{key} = {value!r} is not inside a table. Prices look like "
                '["trn2.3xlarge"] usd_per_hour = 2.5'
            )
        if any(isinstance(each, dict) for each in value.values()):
            found += _entries(value, f"{prefix}{key}.")
        else:
            found.append((f"{prefix}{key}", value))
    return found


def usd(seconds: float, price: Price, *, share: float = 1.0) -> float:
    """Cost of using `share` of an instance for a time."""
    return price.usd_per_hour * seconds * share / 3600.0

"""Tries layouts of a program and ranks those that fit."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch_neuronx.planner.request import PlanError, plan
from torch_neuronx.planner.result import PlanResult

# Axes whose product is the world size, when all of them are given.
PARALLEL_AXES = ("tp", "pp", "dp")


@dataclass(frozen=True, kw_only=True)
class Layout:
    """One choice of all axes, and its plan."""

    values: Mapping[str, int]
    result: PlanResult | None
    error: str = ""

    @property
    def fits(self) -> bool:
        """Whether it ran and fits."""
        return self.result is not None and self.result.fits


def sweep(
    script: str | Path,
    arguments: Sequence[str],
    axes: Mapping[str, Sequence[int]],
    *,
    world_size: int = 1,
    **options: Any,
) -> list[Layout]:
    """Plan every combination of the axes; the highest throughput that fits comes first.

    Args:
        script: as for `plan`.
        arguments: its command line, where "{tp}" stands for the value of the axis tp, and so on.
        axes: names and values. Combinations of tp, pp and dp that do not multiply to the world size
            are left out when dp is an axis; else dp is what remains.
        world_size: ranks of each layout.
        options: more options of `plan`.

    Raises:
        PlanError: no combination is possible, or an argument names an axis that is not given.
    """
    layouts = []
    for values in _combinations(axes, world_size):
        try:
            filled = [argument.format(**values) for argument in arguments]
        except (KeyError, IndexError) as error:
            raise PlanError(
                f"The arguments {list(arguments)} name {error}, which is no axis of the sweep "
                f"({', '.join(values)})."
            ) from None
        replicas = world_size // (values.get("tp", 1) * values.get("pp", 1))
        try:
            found = plan(
                script, filled, world_size=world_size, replicas=max(1, replicas), **options
            )
            layouts.append(Layout(values=values, result=found.results[0]))
        except PlanError as error:
            layouts.append(Layout(values=values, result=None, error=str(error)))
    return sorted(
        layouts,
        key=lambda layout: (
            not layout.fits,
            -(layout.result.units_per_second if layout.result is not None else 0.0),
        ),
    )


def _combinations(axes: Mapping[str, Sequence[int]], world_size: int) -> list[dict[str, int]]:
    found = []
    for choice in itertools.product(*axes.values()):
        values = dict(zip(axes, choice, strict=True))
        parallel = math.prod(values.get(axis, 1) for axis in PARALLEL_AXES)
        if "dp" in values and parallel != world_size:
            continue
        if world_size % parallel:
            continue
        values.setdefault("dp", world_size // parallel)
        found.append(values)
    if not found:
        raise PlanError(
            f"No combination of {dict(axes)} fits {world_size} ranks: tp x pp x dp must give "
            "the world size."
        )
    return found

"""Finds the steps of a program that runs dry, and ends it when enough are seen.

A step is, in this order of preference: what the program marks with `mark_step`; what lies between
two steps of its optimizer; one call of its outermost module.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils._pytree import tree_leaves

from torch_neuronx.clock.measurement import Snapshot, snapshot
from torch_neuronx.clock.pricing import start_graph

# Calls of the outermost module after which a program without optimizer or marks is ended.
_MOST_CALLS = 64


class EnoughStepsError(BaseException):
    """Ends the program: not an Exception, so that it passes through the program's handlers."""


@dataclass
class _Series:
    """Boundaries of one kind, and the units that came before each."""

    snapshots: list[Snapshot] = field(default_factory=list)
    units: list[float] = field(default_factory=list)
    running: float = 0.0

    def close(self, at: Snapshot) -> None:
        """A step ends at `at`."""
        self.snapshots.append(at)
        self.units.append(self.running)
        self.running = 0.0


class StepFinder:
    """Watches a program.

    Args:
        steps: how many to see; the last is reported, so that earlier ones warm up.
        device: whose clock.
        marked: the program says itself where steps end, so its calls do not end it.
    """

    def __init__(self, steps: int, device: int, *, marked: bool = False) -> None:
        self._marked = marked
        self._steps = steps
        self._device = device
        self._calls = _Series()
        self._optimizer = _Series()
        self._marks = _Series()
        self._unit = "steps"
        self._handle: Any = None
        self._first = snapshot(device)

    def start(self) -> None:
        """Begin to watch."""
        global _active
        _active = self
        self._handle = register_optimizer_step_post_hook(self._after_optimizer_step)

    def stop(self) -> None:
        """Stop watching."""
        global _active
        _active = None
        self._handle.remove()

    def module_called(self, module: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        """The outermost module is about to run: the call before it has ended."""
        del module
        start_graph(self._device)
        self._calls.close(snapshot(self._device))
        unit, units = _units_of(arguments)
        if units:
            self._unit = unit
            self._calls.running += units
            self._optimizer.running += units
        if len(self._calls.snapshots) > _MOST_CALLS and not (
            self._marked or self._optimizer.snapshots or self._marks.snapshots
        ):
            raise EnoughStepsError

    def mark(self, units: float, unit: str) -> None:
        """The program says that a step of `units` has ended."""
        self._marks.running = units
        self._marks.close(snapshot(self._device))
        self._unit = unit
        if len(self._marks.snapshots) >= self._steps:
            raise EnoughStepsError

    def last_step(self) -> tuple[Snapshot, Snapshot, float, str, str]:
        """Start, end, units, unit and how the step was found.

        Raises:
            ValueError: the program did nothing on neuron.
        """
        end = snapshot(self._device)
        if end.counts:
            for found, series in (("marked", self._marks), ("optimizer", self._optimizer)):
                if series.snapshots:
                    points = [self._first, *series.snapshots]
                    return points[-2], points[-1], *self._counted(series), found
        if self._calls.snapshots and self._calls.snapshots[-1].counts != end.counts:
            self._calls.close(end)
        points = self._calls.snapshots
        if len(points) < 2 or not end.counts:
            raise ValueError(
                "The program called no module on neuron and marked no step. Does it use the "
                "device neuron? Without modules, mark its steps: "
                'torch_neuronx.mark_step(units=8, unit="images").'
            )
        return points[-2], points[-1], *self._counted(self._calls), "module call"

    def _counted(self, series: _Series) -> tuple[float, str]:
        """Units of the last step and their name; a step without tensors counts as itself."""
        units = series.units[-1]
        return (units, self._unit) if units else (1.0, "steps")

    def _after_optimizer_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        del optimizer
        start_graph(self._device)
        self._optimizer.close(snapshot(self._device))
        if len(self._optimizer.snapshots) >= self._steps and not self._marks.snapshots:
            raise EnoughStepsError


_active: StepFinder | None = None


def mark_step(units: float, unit: str = "steps") -> None:
    """Say that a step ended which did `units` of something: images, audio seconds, tokens.

    A plan reports the time of one such step; outside a plan this does nothing.

    Raises:
        ValueError: `units` is not above zero.
    """
    if not units > 0:
        raise ValueError(f"mark_step got {units} {unit}; a step does more than none.")
    if _active is not None:
        _active.mark(units, unit)


def _units_of(arguments: tuple[Any, ...]) -> tuple[str, float]:
    """Tokens of the first integer tensor, else samples of the first tensor."""
    tensors = [leaf for leaf in tree_leaves(arguments) if isinstance(leaf, torch.Tensor)]
    for tensor in tensors:
        if not tensor.is_floating_point() and tensor.dim() > 0 and tensor.dtype != torch.bool:
            return "tokens", float(tensor.numel())
    if tensors and tensors[0].dim() > 0:
        return "samples", float(tensors[0].shape[0])
    return "steps", 0.0

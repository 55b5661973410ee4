"""What was alive when HBM was fullest, found by replaying the allocator's history."""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from torch_neuronx import _C
from torch_neuronx.clock import modules

KINDS = ("parameters", "gradients", "optimizer", "buffers", "activations")


@dataclass(frozen=True, kw_only=True)
class Live:
    """Memory that was alive at the peak, from one place and of one kind."""

    kind: str
    """One of KINDS; "activations" is everything that is none of the others."""
    module: str
    python_line: str
    op: str
    num_bytes: int
    count: int


@dataclass(frozen=True, kw_only=True)
class Peak:
    """The fullest moment of one device's HBM."""

    num_bytes: int
    live: tuple[Live, ...]
    """Largest first."""

    def by_kind(self) -> dict[str, int]:
        """Bytes of each kind that was there."""
        sums = dict.fromkeys(KINDS, 0)
        for row in self.live:
            sums[row.kind] += row.num_bytes
        return {kind: count for kind, count in sums.items() if count}


class Kinds:
    """Remembers which storages hold parameters, gradients, optimizer state and buffers.

    Addresses are reused, so each is filed with the number of allocations before it was seen.
    """

    def __init__(self, device: int) -> None:
        self._device = device
        self._seen: dict[int, list[tuple[int, str]]] = defaultdict(list)
        self._hooks: list[Any] = []
        self._optimizers: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._roots: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()

    def start(self) -> None:
        """Listen to optimizers; outermost modules are reported to `module_called`."""
        self._hooks = [
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ]

    def stop(self) -> None:
        """Stop listening, and look once more at what is known."""
        for hook in self._hooks:
            hook.remove()
        for optimizer in self._optimizers:
            self._file_optimizer(optimizer)
        for root in self._roots:
            self._file_module(root)

    def module_called(self, module: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        """An outermost module is about to run."""
        del arguments
        if module not in self._roots:
            self._roots.add(module)
            self._file_module(module)

    def kind_of(self, address: int, order: int) -> str:
        """The kind of the block allocated as number `order` at `address`."""
        for seen, kind in self._seen.get(address, ()):
            if seen >= order:
                return kind
        return "activations"

    def _before_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self._optimizers.add(optimizer)
        for parameter in _parameters(optimizer):
            self._file(parameter, "parameters")
            if parameter.grad is not None:
                self._file(parameter.grad, "gradients")

    def _after_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self._file_optimizer(optimizer)

    def _file_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        for state in optimizer.state.values():
            for value in state.values() if isinstance(state, dict) else ():
                self._file(value, "optimizer")

    def _file_module(self, module: torch.nn.Module) -> None:
        for parameter in module.parameters():
            self._file(parameter, "parameters")
            if parameter.grad is not None:
                self._file(parameter.grad, "gradients")
        for buffer in module.buffers():
            self._file(buffer, "buffers")

    def _file(self, value: Any, kind: str) -> None:
        tensor = _local(value)
        if tensor is None or tensor.device.type != "neuron" or tensor.device.index != self._device:
            return
        address = tensor.untyped_storage().data_ptr()
        if address:
            self._seen[address].append((_C._num_allocator_events(self._device), kind))


def _local(value: Any) -> torch.Tensor | None:
    value = getattr(value, "_local_tensor", value)
    return value if isinstance(value, torch.Tensor) else None


def _parameters(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]


@dataclass
class _Block:
    num_bytes: int
    order: int
    origin: tuple[int, int, bool, str]


_BEFORE = (0, 0, False, "")


def find_peak(
    before: Iterable[tuple[int, int]],
    history: Iterable[tuple[int, int, int, tuple[int, int, bool, str] | None]],
    kinds: Kinds,
    lines: list[str],
) -> Peak:
    """Replay the history of a device from the blocks that were alive `before` it.

    Args:
        before: address and bytes of each.
        history: position, bytes (negative when freed), address and origin, in order.
        kinds: what is known of addresses.
        lines: Python lines by number.
    """
    alive = {
        address: _Block(num_bytes=num_bytes, order=0, origin=_BEFORE)
        for address, num_bytes in before
    }
    current = peak = sum(block.num_bytes for block in alive.values())
    at_peak = dict(alive)
    changed = False
    for order, num_bytes, address, origin in history:
        if num_bytes < 0:
            # The moment before the first release after a new maximum is the peak.
            if changed and current == peak:
                at_peak, changed = dict(alive), False
            alive.pop(address, None)
            current += num_bytes
            continue
        alive[address] = _Block(num_bytes=num_bytes, order=order, origin=origin or _BEFORE)
        current += num_bytes
        if current > peak:
            peak, changed = current, True
    if changed and current == peak:
        at_peak = alive
    return Peak(num_bytes=peak, live=_group(at_peak, kinds, lines))


def _group(alive: dict[int, _Block], kinds: Kinds, lines: list[str]) -> tuple[Live, ...]:
    sums: dict[tuple[str, str, str, str], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for address, block in alive.items():
        line, module, _, op = block.origin
        kind = kinds.kind_of(address, block.order)
        key = (kind, modules.name_of(module), lines[line] if line < len(lines) else "", op)
        num_bytes, count = sums[key]
        sums[key] = num_bytes + block.num_bytes, count + 1
    rows = [
        Live(kind=kind, module=module, python_line=line, op=op, num_bytes=num_bytes, count=count)
        for (kind, module, line, op), (num_bytes, count) in sums.items()
    ]
    return tuple(sorted(rows, key=lambda row: -row.num_bytes))

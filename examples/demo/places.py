"""Where each job runs: the device in bf16, and the CPU in bf16 and in fp32."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass(frozen=True, kw_only=True)
class Place:
    """A device with the dtype that the job computes in."""

    label: str
    device: torch.device
    dtype: torch.dtype

    def synchronize(self) -> None:
        """Wait for all the work given to the device."""
        torch.get_device_module(self.device).synchronize()


@dataclass(frozen=True, kw_only=True)
class Places:
    """The device, its rival at the same dtype, and the reference for the values."""

    device: Place
    cpu: Place
    reference: Place

    def in_turn(self, turn: int) -> list[Place]:
        """All three; who begins changes, so that a noisy moment hits each of them alike."""
        three = [self.device, self.cpu, self.reference]
        first = turn % 3
        return three[first:] + three[:first]


def places(device: str) -> Places:
    """The three places of a run on `device`."""
    cpu = torch.device("cpu")
    return Places(
        device=Place(label=f"{device} bf16", device=torch.device(device), dtype=torch.bfloat16),
        cpu=Place(label="CPU bf16", device=cpu, dtype=torch.bfloat16),
        reference=Place(label="CPU fp32", device=cpu, dtype=torch.float32),
    )


def move(module: nn.Module, device: torch.device) -> None:
    """Move the parameters in place; transformers' own `to` is not typed for a device."""
    nn.Module.to(module, device)


@dataclass(kw_only=True)
class Stopwatch:
    """Seconds of each measured stretch of work, complete on the device."""

    seconds: list[float] = field(default_factory=list)

    @contextmanager
    def measure(self, place: Place) -> Iterator[None]:
        """Time the body; waits for the device before and after it."""
        place.synchronize()
        start = time.perf_counter()
        yield
        place.synchronize()
        self.seconds.append(time.perf_counter() - start)

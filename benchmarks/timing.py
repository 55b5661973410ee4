"""Interleaved timing of alternatives: noise of the host hits all of them alike."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping


def calls_per_sample(run: Callable[[], object], *, seconds: float) -> int:
    """How many calls of `run` take about `seconds`."""
    calls = 1
    while True:
        start = time.perf_counter()
        for _ in range(calls):
            run()
        elapsed = time.perf_counter() - start
        if elapsed >= seconds / 2:
            return max(1, round(calls * seconds / elapsed))
        calls *= 2


def medians(
    alternatives: Mapping[str, Callable[[], object]],
    *,
    samples: int = 15,
    seconds_per_sample: float = 0.01,
) -> dict[str, float]:
    """Seconds per call of each alternative: the median over samples taken in turn."""
    calls = {
        name: calls_per_sample(run, seconds=seconds_per_sample)
        for name, run in alternatives.items()
    }
    times: dict[str, list[float]] = {name: [] for name in alternatives}
    gc_was_enabled = gc.isenabled()
    gc.disable()
    try:
        for _ in range(samples):
            for name, run in alternatives.items():
                start = time.perf_counter()
                for _ in range(calls[name]):
                    run()
                times[name].append((time.perf_counter() - start) / calls[name])
    finally:
        if gc_was_enabled:
            gc.enable()
    return {name: statistics.median(values) for name, values in times.items()}

"""`torch.neuron.measure()`: a block of a program as modelled time, memory and money."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import neuron_chip
from neuron_chip import Work, cost, price_of, total
from neuron_chip.cost import NO_TIME, Time
from neuron_chip.gpus import GPU_INSTANCES, gpu_instance, gpu_seconds
from neuron_chip.prices import PRICES, Price
from torch_neuronx import _C
from torch_neuronx.clock import memory_peak, modules
from torch_neuronx.clock.pricing import Priced, machine, priced, raise_failure, time_of
from torch_neuronx.errors import ClockError


@dataclass(frozen=True, kw_only=True)
class Row:
    """Calls of one signature from one place."""

    priced: Priced
    module: str
    python_line: str
    backward: bool
    calls: int

    @property
    def time(self) -> Time:
        """Of all the calls."""
        one = self.priced.time
        return Time(
            seconds=self.calls * one.seconds,
            low_seconds=self.calls * one.low_seconds,
            high_seconds=self.calls * one.high_seconds,
            busy_seconds={name: self.calls * busy for name, busy in one.busy_seconds.items()},
            default_seconds=self.calls * one.default_seconds,
        )


@dataclass(frozen=True, kw_only=True)
class Breakdown:
    """Where the time of all operations goes, four ways; seconds, largest first.

    Streams overlap, and engines do: the sums may exceed the measured time.
    """

    rows: tuple[Row, ...]

    @cached_property
    def engine(self) -> Mapping[str, float]:
        """Busy seconds of "tensor", "vector", "hbm", "collectives", "launch", ..."""
        sums: dict[str, float] = defaultdict(float)
        for row in self.rows:
            for name, seconds in row.time.busy_seconds.items():
                sums[name] += seconds
        return _sorted(sums)

    @cached_property
    def op(self) -> Mapping[str, float]:
        """Seconds by operator."""
        return self._by(lambda row: row.priced.call.op)

    @cached_property
    def module(self) -> Mapping[str, float]:
        """Seconds by module; backward belongs to the module of its forward."""
        return self._by(lambda row: row.module)

    @cached_property
    def python_line(self) -> Mapping[str, float]:
        """Seconds by Python line; backward belongs to the line of its forward."""
        return self._by(lambda row: row.python_line)

    def _by(self, key: Callable[[Row], str]) -> Mapping[str, float]:
        sums: dict[str, float] = defaultdict(float)
        for row in self.rows:
            sums[key(row)] += row.time.seconds
        return _sorted(sums)


def _sorted(sums: Mapping[str, float]) -> Mapping[str, float]:
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


@dataclass(kw_only=True)
class Measurement:
    """What a block would take on one logical core. Complete once the block has ended."""

    device: int
    time: float = 0.0
    """Modelled seconds from the start of the block until all its streams are done."""
    hbm_peak: int = 0
    """Most bytes that tensors occupied during the block."""
    rows: tuple[Row, ...] = field(default=(), repr=False)
    peak: memory_peak.Peak | None = field(default=None, repr=False)
    """What was alive at the peak; None unless the block was measured with `memory=True`."""

    @cached_property
    def breakdown(self) -> Breakdown:
        """The time by engine, op, module and Python line."""
        return Breakdown(rows=self.rows)

    @cached_property
    def work(self) -> Work:
        """All counted work."""
        return total(row.calls * row.priced.work for row in self.rows)

    @cached_property
    def _sum(self) -> Time:
        result = NO_TIME
        for row in self.rows:
            result += row.time
        return result

    @property
    def range(self) -> tuple[float, float]:
        """Least and most seconds: `time` with the uncertainty of its operations."""
        summed = self._sum
        if not summed.seconds:
            return self.time, self.time
        scale = self.time / summed.seconds
        return scale * summed.low_seconds, scale * summed.high_seconds

    @property
    def default_share(self) -> float:
        """Share of the operations' time that rests on default rules."""
        return self._sum.default_share

    @property
    def default_ops(self) -> Mapping[str, float]:
        """Seconds by operator for which no rule was written."""
        sums: dict[str, float] = defaultdict(float)
        for row in self.rows:
            if row.priced.work.default_rule:
                sums[row.priced.call.op] += row.time.seconds
        return _sorted(sums)

    @property
    def mfu(self) -> float:
        """Share of the core's peak that useful matrix products take."""
        where = machine()
        return cost.mfu(self.work, self.time, where.chip, lnc=where.lnc)

    @property
    def mbu(self) -> float:
        """Share of the core's nominal HBM rate that the traffic takes."""
        where = machine()
        return cost.mbu(self.work, self.time, where.chip, lnc=where.lnc)

    def seconds_on(self, instance: str) -> float:
        """The block's seconds on one core of another Neuron instance, or one GPU of a GPU instance.

        On a GPU: the roofline of the same work, a best case without launches.
        """
        if any(row.name == instance for row in GPU_INSTANCES):
            return gpu_seconds(self.work, gpu_instance(instance).gpu)
        other = neuron_chip.instance(instance).chip
        here = machine()
        if other == here.chip:
            return self.time
        summed = self._sum.seconds
        there = sum(row.calls * time_of(row.priced.work, other).seconds for row in self.rows)
        return self.time * there / summed if summed else 0.0

    def cost(
        self,
        instance: str | None = None,
        *,
        market: str | None = None,
        prices: tuple[Price, ...] = PRICES,
    ) -> float:
        """US dollars for renting a whole instance for the block's time there.

        Args:
            instance: of AWS, Neuron or GPU; this process's own by default.
            market: "on_demand", "capacity_block" or "spot"; the first that is quoted by default.
            prices: another price table, as of `neuron_chip.prices.with_overrides`.

        Raises:
            NoPriceError: nobody quotes it.
        """
        name = instance or machine().instance.name
        quoted = price_of(name, market=market, table=prices)
        return self.seconds_on(name) * quoted.usd_per_hour / 3600

    def __str__(self) -> str:
        """The measurement as a short table."""
        from torch_neuronx.clock.text import measurement_text

        return measurement_text(self)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The clock of a device, and all calls counted so far."""

    device: int
    clock_ns: int
    counts: Mapping[tuple[int, int, int, bool], int]


def snapshot(device: int) -> Snapshot:
    """The state of the clock now, after all queued work."""
    _C._synchronize(device)
    return Snapshot(device=device, clock_ns=_C._clock_now(device), counts=_counts())


def between(first: Snapshot, last: Snapshot) -> Measurement:
    """What happened between two snapshots of a device; the memory fields stay empty."""
    return Measurement(
        device=first.device,
        time=1e-9 * (last.clock_ns - first.clock_ns),
        rows=_rows(first.counts, last.counts),
    )


def modelled_time(device: int | None = None) -> float:
    """Seconds that the work of `device` would have taken on the chip so far.

    The clock runs inside `measure()` and under the driver "dry"; between blocks it stands still.

    Raises:
        ClockError: a cost rule failed.
    """
    raise_failure()
    return 1e-9 * _C._clock_now(_C._current_device() if device is None else device)


def _counts() -> dict[tuple[int, int, int, bool], int]:
    return {(a, b, c, d): calls for a, b, c, d, calls in _C._observer_counts()}


@contextmanager
def measure(device: int | None = None, *, memory: bool = False) -> Iterator[Measurement]:
    """Model what a block takes on the chip, while it runs here.

    Blocks may nest. What the block queues is waited for at its end.

    Args:
        device: the current one by default.
        memory: also keep what was alive at the peak of HBM, by module, Python line and kind.

    Raises:
        ClockError: a cost rule failed, or two blocks ask for `memory` at a time.
    """
    index = _C._current_device() if device is None else device
    result = Measurement(device=index)
    recording = _Recording(index) if memory else None
    with ExitStack() as stack:
        stack.enter_context(
            modules.tracked(*([recording.kinds.module_called] if recording else []))
        )
        if recording is not None:
            recording.start()
            stack.callback(recording.stop)
        was_on = _C._observer_on()
        before = snapshot(index)
        _C._reset_peak_memory_stats(index)
        _C._observer_start()
        try:
            yield result
        finally:
            after = snapshot(index)
            if not was_on:
                _C._observer_stop()
        measured = between(before, after)
        result.time, result.rows = measured.time, measured.rows
        result.hbm_peak = _C._memory_stats(index)["allocated_bytes"]["all"]["peak"]
        if recording is not None:
            recording.stop()
            result.peak = recording.peak()
    raise_failure()


def _rows(
    before: Mapping[tuple[int, int, int, bool], int],
    after: Mapping[tuple[int, int, int, bool], int],
) -> tuple[Row, ...]:
    lines = _C._python_lines()
    found = []
    for key, calls in after.items():
        fresh = calls - before.get(key, 0)
        if fresh:
            signature, line, module, backward = key
            found.append(
                Row(
                    priced=priced(signature),
                    module=modules.name_of(module),
                    python_line=lines[line],
                    backward=backward,
                    calls=fresh,
                )
            )
    return tuple(sorted(found, key=lambda row: -row.time.seconds))


class _Recording:
    """The allocator's history of one block."""

    _running = False

    def __init__(self, device: int) -> None:
        self._device = device
        self.kinds = memory_peak.Kinds(device)
        self._before: list[tuple[int, int]] = []
        self._stopped = False

    def start(self) -> None:
        if _Recording._running:
            raise ClockError(
                "measure(memory=True) is running already; the allocator has one history. Measure "
                "the inner block without memory."
            )
        _Recording._running = True
        self._before = _C._live_blocks(self._device)
        _C._record_allocations(True)
        self.kinds.start()

    def stop(self) -> None:
        if not self._stopped:
            self._stopped = True
            _Recording._running = False
            self.kinds.stop()
            _C._record_allocations(False)

    def peak(self) -> memory_peak.Peak:
        return memory_peak.find_peak(
            self._before, _C._allocations(self._device), self.kinds, _C._python_lines()
        )

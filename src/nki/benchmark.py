"""nki.profile and nki.benchmark: the modelled time of a kernel on the chip."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nki.errors import TraceError
from nki.jit import Kernel, Specialization, simulate
from nki.simulator.timeline import Timeline, schedule
from nki.specialize import Call


def timelines(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Timeline]:
    """The modelled run on each core."""
    call = Call.bind(kernel.function, args, kwargs)
    programs = kernel.specialize(call).programs
    if programs is None:
        raise _no_program(kernel)
    return [schedule(program) for program in programs]


def profile(kernel: Kernel | Callable[..., Any]) -> Callable[..., Timeline]:
    """profile(kernel)(*args): the modelled timeline of the slowest core. Nothing is executed."""
    made = simulate(kernel)

    def run(*args: Any, **kwargs: Any) -> Timeline:
        return max(timelines(made, args, kwargs), key=lambda item: item.total_seconds)

    return run


def modelled_seconds(kernel: Kernel | Callable[..., Any], *args: Any, **kwargs: Any) -> float:
    """Modelled time of one call on the chip, without the launch; priced once a specialisation.

    Only shapes and dtypes of the arrays count, so fake tensors do. The slowest core decides.

    Raises:
        TraceError: the kernel has no fixed program.
    """
    made = simulate(kernel)
    return seconds_of(made, made.specialize(Call.bind(made.function, args, kwargs)))


def seconds_of(kernel: Kernel, specialization: Specialization) -> float:
    """Modelled time of a specialisation."""
    if specialization.seconds is None:
        if specialization.programs is None:
            raise _no_program(kernel)
        specialization.seconds = max(
            schedule(program).total_seconds for program in specialization.programs
        )
    return specialization.seconds


def _no_program(kernel: Kernel) -> TraceError:
    return TraceError(
        f"{kernel.__name__} steers Python by values of the device, so it has no fixed program "
        "to price. Use nl.fori_loop and nl.while_loop."
    )


@dataclass(frozen=True, slots=True)
class Latency:
    """Modelled latency; the model has no spread, so every percentile is the same."""

    microseconds: float

    def get_latency_percentile(self, percentile: int) -> float:
        """Microseconds."""
        del percentile
        return self.microseconds


@dataclass(slots=True)
class BenchmarkResult:
    """What a benchmarked kernel remembers of its last call."""

    nc_latency: Latency


class Benchmark:
    """A kernel that also prices each call."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.benchmark_result: BenchmarkResult | None = None
        self.timeline: Timeline | None = None

    def __getitem__(self, grid: int | tuple[int, ...]) -> Benchmark:
        return Benchmark(self.kernel[grid])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Price the call, then run it."""
        found = timelines(self.kernel, args, kwargs)
        self.timeline = max(found, key=lambda item: item.total_seconds)
        self.benchmark_result = BenchmarkResult(Latency(self.timeline.total_seconds * 1e6))
        return self.kernel(*args, **kwargs)


def benchmark(kernel: Kernel | Callable[..., Any] | None = None, **options: Any) -> Any:
    """benchmark(kernel)(*args) runs the kernel and keeps its modelled latency.

    Options of the older decorator (warmup, iters, save_neff_name, ...) are accepted.
    """
    if kernel is None:
        return lambda function: benchmark(function, **options)
    return Benchmark(simulate(kernel))

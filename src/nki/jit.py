"""@nki.jit, nki.simulate: specialise once, then replay. What instructions do is in `simulator`."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neuron_chip import Chip
from nki import arrays, frameworks, settings
from nki.errors import NkiValidationError, NkiWarning, TraceError
from nki.interface import Interface, Result, Returned, describe, digest, interface_of
from nki.program import builder as building
from nki.program.ir import Program
from nki.simulator import native
from nki.simulator.memory import Machine, SharedMemory
from nki.simulator.replay import Replay
from nki.simulator.step import run_in_steps
from nki.specialize import Call, trace

_MAX_CORES = {2: 1, 3: 2, 4: 2}


@dataclass(slots=True, weakref_slot=True, eq=False)
class Specialization:
    """The programs of one kernel for one set of shapes, dtypes and constants."""

    programs: list[Program] | None
    """None: a value known only on the device steers the kernel's Python; it runs in steps."""
    replay: Replay | None = None
    seconds: float | None = None
    """Modelled time, once somebody has asked for it."""
    _interface: Interface | None = None
    _digest: str = ""

    @property
    def interface(self) -> Interface:
        """What the kernel takes, writes and returns; only for kernels with programs."""
        if self._interface is None:
            assert self.programs is not None
            self._interface = interface_of(self.programs)
        return self._interface

    @property
    def digest(self) -> str:
        """Of what the programs do, the same in every process; only for kernels with programs."""
        if not self._digest:
            assert self.programs is not None
            self._digest = digest(self.programs)
        return self._digest


@dataclass(slots=True, eq=False)
class Kernel:
    """A kernel function that can be called with arrays, or with tensors inside another kernel."""

    function: Callable[..., Any]
    grid: tuple[int, ...] = ()
    strict: bool | None = None
    step: bool | None = None
    target: str | None = None
    """Chip that the kernel asks for; environment variables go first."""
    cache: dict[Hashable, Specialization] = field(default_factory=dict, repr=False)
    launches: dict[Any, Kernel] = field(default_factory=dict, repr=False)
    """The same kernel on the grids that a chip can run: graph capture needs existing objects."""
    __wrapped__: Any = None
    __name__: str = "kernel"

    def __post_init__(self) -> None:
        self.__wrapped__ = self.function
        self.__name__ = getattr(self.function, "__name__", "kernel")
        if not self.grid:
            for cores in range(1, max(_MAX_CORES.values()) + 1):
                launched = Kernel(
                    self.function, (cores,), self.strict, self.step, self.target, self.cache
                )
                self.launches[cores] = self.launches[(cores,)] = launched

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Kernel)
            and self.function is other.function
            and (self.grid, self.strict, self.step, self.target)
            == (other.grid, other.strict, other.step, other.target)
        )

    def __hash__(self) -> int:
        return hash((id(self.function), self.grid, self.strict, self.step, self.target))

    @property
    def func(self) -> Callable[..., Any]:
        """The Python function."""
        return self.function

    def __getitem__(self, grid: int | tuple[int, ...]) -> Kernel:
        known = self.launches.get(grid)
        if known is not None:
            return known
        sizes = (grid,) if isinstance(grid, int) else tuple(int(size) for size in grid)
        return Kernel(self.function, sizes, self.strict, self.step, self.target, self.cache)

    def with_schedule(self, *_: Any, **__: Any) -> Kernel:
        """The kernel with scheduling hints; values do not depend on them."""
        return self

    @property
    def num_cores(self) -> int:
        """Programs that one call launches."""
        return int(np.prod(self.grid)) if self.grid else 1

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run with arrays; with tensors of a running kernel, become part of it."""
        if building.current_or_none() is not None:
            return self.function(*args, **kwargs)  # inlined into the calling kernel
        call = Call.bind(self.function, args, kwargs)
        runner = frameworks.runner_for(call.arrays.values())
        return self.run(call) if runner is None else runner(self, args, kwargs)

    @property
    def in_steps(self) -> bool:
        """Whether calls run the kernel's Python instead of replaying its program."""
        return settings.enabled("NKI_STEP") if self.step is None else self.step

    def run(self, call: Call) -> Any:
        """Specialise if needed, then execute on host memory."""
        specialization = None if self.in_steps else self.specialize(call)
        bound = {path: arrays.argument(value) for path, value in call.arrays.items()}
        as_torch = any(argument.is_torch for argument in bound.values())
        memory = {path: argument.memory for path, argument in bound.items()}
        with native.one_blas_thread():
            if specialization is None or specialization.programs is None:
                machine, result = run_in_steps(
                    call,
                    chip=settings.target_chip(self.target),
                    grid=self.grid,
                    num_cores=self.num_cores,
                    arguments=memory,
                    strict=self._strict(),
                )
                described = describe(result, {})
            else:
                machine = replay(specialization, memory)
                result, described = (
                    specialization.programs[0].result,
                    specialization.interface.results,
                )
        for argument in bound.values():
            if argument.write_back is not None:
                argument.write_back()
        return _results(machine, result, described, call, as_torch=as_torch)

    def _strict(self) -> bool:
        return settings.enabled("NKI_STRICT") if self.strict is None else self.strict

    def specialize(self, call: Call) -> Specialization:
        """The specialisation for a call's shapes, dtypes and constants; traced on first use."""
        chip = settings.target_chip(self.target)
        self._check_grid(chip)
        key = call.key()
        full = (key, self.grid, chip.name, self._strict())
        if key is not None and full in self.cache:
            return self.cache[full]
        try:
            made = Specialization(
                [
                    trace(
                        call,
                        chip=chip,
                        core=core,
                        grid=self.grid,
                        num_cores=self.num_cores,
                        strict=self._strict(),
                    )
                    for core in range(self.num_cores)
                ]
            )
        except TraceError:
            if self._strict():
                raise
            made = Specialization(None)
        _report(made)
        if key is not None:
            self.cache[full] = made
        return made

    def _check_grid(self, chip: Chip) -> None:
        most = _MAX_CORES[chip.generation]
        if self.num_cores > most:
            raise NkiValidationError(
                f"kernel[{self.num_cores}] on {chip.name}: a logical core has at most {most} "
                "physical cores. Launch kernel[1] or kernel[2] and shard over ranks instead."
            )


def _report(specialization: Specialization) -> None:
    for program in specialization.programs or []:
        for finding in program.findings:
            warnings.warn(str(finding), NkiWarning, stacklevel=4)


def replay(
    specialization: Specialization,
    memory: dict[str, Any],
    given: dict[int, Any] | None = None,
) -> Machine:
    """Run the programs; return core 0's machine, which holds the results.

    Args:
        specialization: one that has programs.
        memory: the bytes of each array argument, by path.
        given: bytes for shared allocations by position, to get results without a copy.
    """
    programs = specialization.programs
    assert programs is not None
    shared = SharedMemory(given)
    machines = [
        Machine(core=core, num_cores=len(programs), shared=shared, arguments=memory)
        for core in range(len(programs))
    ]
    if specialization.replay is None:
        specialization.replay = Replay(programs)
    specialization.replay.run(machines)
    return machines[0]


def _results(machine: Machine, result: Any, described: Any, call: Call, *, as_torch: bool) -> Any:
    if isinstance(described, Returned):
        return call.arrays[described.path]  # the caller's own array, updated in place
    if isinstance(described, Result):
        values = np.ascontiguousarray(machine.array(result))
        return arrays.result(values, result.dtype, as_torch=as_torch)
    if isinstance(described, list | tuple):
        items = [
            _results(machine, item, about, call, as_torch=as_torch)
            for item, about in zip(result, described, strict=True)
        ]
        return items if isinstance(described, list) else tuple(items)
    if isinstance(described, dict):
        return {
            name: _results(machine, result[name], about, call, as_torch=as_torch)
            for name, about in described.items()
        }
    return result


def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Make a function a kernel; older options (mode, debug_kernel, ...) are ignored.

    Args:
        fn: the kernel function; arguments are arrays and compile-time constants.
        options: strict=True rejects what hardware would not run; step=True runs it as Python;
            platform_target="trn3" names the chip where no environment variable does.
    """
    if fn is None:
        return functools.partial(jit, **options)
    if isinstance(fn, Kernel):
        return fn
    return Kernel(
        fn,
        strict=options.get("strict"),
        step=options.get("step"),
        target=options.get("platform_target"),
    )


def simulate(
    kernel: Kernel | Callable[..., Any], *, step: bool | None = None, strict: bool | None = None
) -> Kernel:
    """The kernel, to be called with arrays and run in the simulator."""
    made = kernel if isinstance(kernel, Kernel) else Kernel(kernel)
    return Kernel(
        made.function,
        made.grid,
        made.strict if strict is None else strict,
        made.step if step is None else step,
        made.target,
        made.cache,
    )


frameworks.announce()

"""@nki.jit, nki.simulate: specialise once, then replay. What instructions do is in `simulator`."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neuron_chip import Chip
from nki import arrays, settings
from nki.errors import NkiValidationError, NkiWarning, TraceError
from nki.program import builder as building
from nki.program.ir import Program
from nki.program.tensor import NkiTensor
from nki.simulator import native
from nki.simulator.memory import Machine, SharedMemory
from nki.simulator.replay import Replay
from nki.simulator.step import run_in_steps
from nki.specialize import Call, trace

_MAX_CORES = {2: 1, 3: 2, 4: 2}


@dataclass(slots=True)
class Specialization:
    """The programs of one kernel for one set of shapes, dtypes and constants."""

    programs: list[Program] | None
    """None: a value known only on the device steers the kernel's Python; it runs in steps."""
    replay: Replay | None = None


@dataclass(slots=True)
class Kernel:
    """A kernel function that can be called with arrays, or with tensors inside another kernel."""

    function: Callable[..., Any]
    grid: tuple[int, ...] = ()
    strict: bool | None = None
    step: bool | None = None
    cache: dict[Hashable, Specialization] = field(default_factory=dict, repr=False)
    __wrapped__: Any = None
    __name__: str = "kernel"

    def __post_init__(self) -> None:
        self.__wrapped__ = self.function
        self.__name__ = getattr(self.function, "__name__", "kernel")

    @property
    def func(self) -> Callable[..., Any]:
        """The Python function."""
        return self.function

    def __getitem__(self, grid: int | tuple[int, ...]) -> Kernel:
        sizes = (grid,) if isinstance(grid, int) else tuple(int(size) for size in grid)
        return Kernel(self.function, sizes, self.strict, self.step, self.cache)

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
        return self.run(args, kwargs)

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Specialise if needed, then execute on the given arrays."""
        call = Call.bind(self.function, args, kwargs)
        step = settings.enabled("NKI_STEP") if self.step is None else self.step
        specialization = None if step else self.specialize(call)
        bound = {path: arrays.argument(value) for path, value in call.arrays.items()}
        as_torch = any(argument.is_torch for argument in bound.values())
        memory = {path: argument.memory for path, argument in bound.items()}
        with native.one_blas_thread():
            if specialization is None or specialization.programs is None:
                machine, result = run_in_steps(
                    call,
                    chip=settings.target_chip(),
                    grid=self.grid,
                    num_cores=self.num_cores,
                    arguments=memory,
                    strict=self._strict(),
                )
            else:
                machine, result = self._replay(specialization, memory)
        for argument in bound.values():
            if argument.write_back is not None:
                argument.write_back()
        return _results(machine, result, call, as_torch=as_torch)

    def _replay(
        self, specialization: Specialization, memory: dict[str, Any]
    ) -> tuple[Machine, Any]:
        programs = specialization.programs
        assert programs is not None
        shared = SharedMemory()
        machines = [
            Machine(core=core, num_cores=len(programs), shared=shared, arguments=memory)
            for core in range(len(programs))
        ]
        if specialization.replay is None:
            specialization.replay = Replay(programs)
        specialization.replay.run(machines)
        return machines[0], programs[0].result

    def _strict(self) -> bool:
        return settings.enabled("NKI_STRICT") if self.strict is None else self.strict

    def specialize(self, call: Call) -> Specialization:
        """The specialisation for a call's shapes, dtypes and constants; traced on first use."""
        chip = settings.target_chip()
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


def _results(machine: Machine, result: Any, call: Call, *, as_torch: bool) -> Any:
    if isinstance(result, NkiTensor):
        path = result.storage.argument
        if path is not None and result.shape == result.storage.shape and result.offset == 0:
            return call.arrays[path]  # the caller's own array, updated in place
        values = np.ascontiguousarray(machine.array(result))
        return arrays.result(values, result.dtype, as_torch=as_torch)
    if isinstance(result, list | tuple):
        items = [_results(machine, item, call, as_torch=as_torch) for item in result]
        return items if isinstance(result, list) else tuple(items)
    if isinstance(result, dict):
        return {
            name: _results(machine, item, call, as_torch=as_torch) for name, item in result.items()
        }
    return result


def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Make a function a kernel; older options (mode, platform_target, ...) are ignored.

    Args:
        fn: the kernel function; arguments are arrays and compile-time constants.
        options: strict=True rejects what hardware would not run; step=True runs it as Python.
    """
    if fn is None:
        return functools.partial(jit, **options)
    if isinstance(fn, Kernel):
        return fn
    return Kernel(fn, strict=options.get("strict"), step=options.get("step"))


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
        made.cache,
    )

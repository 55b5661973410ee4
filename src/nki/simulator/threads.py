"""Replay of a program by several threads, one independent part after the other."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nki import settings
from nki.errors import DeviceTrapError
from nki.program.ir import NkiInstruction
from nki.program.storage import PARTITIONS
from nki.simulator import native
from nki.simulator.memory import Bytes

# Below this much work a thread costs more than it brings.
_LEAST_RECORDS = 64
# Tiles that several parts read are kept for the whole run; more than this is not worth it.
_MOST_SHARED_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class Part:
    """Words of one independent part, and the place of its tiles in a thread's memory."""

    begin: int
    end: int
    storages: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Parallel:
    """A program for threads."""

    first: Part
    """Runs before the parts; its tiles stay."""
    parts: list[Part]
    shared_bytes: int
    thread_bytes: int


def num_threads() -> int:
    """Threads that a replay may use: NKI_NUM_THREADS, or the processors of this process."""
    if not settings.read("NKI_NUM_THREADS"):
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return settings.whole("NKI_NUM_THREADS", least=1)


def worth_it(records: int, shared_bytes: int = 0) -> bool:
    """Whether a program is long enough, and its shared tiles few enough, for threads."""
    return records >= _LEAST_RECORDS and shared_bytes <= _MOST_SHARED_BYTES


class Team:
    """Memory for the threads of one replay, kept from call to call."""

    def __init__(self, parallel: Parallel) -> None:
        self.parallel = parallel
        self._shared: Bytes = np.empty(parallel.shared_bytes + 64, np.uint8)
        self._own: list[Bytes] = []

    def run(
        self,
        code: npt.NDArray[np.int64],
        sources: dict[int, NkiInstruction],
        bases: npt.NDArray[np.uint64],
        registers: npt.NDArray[np.int64],
    ) -> None:
        """Run everything on the memories that `bases` has for arguments and results.

        Raises:
            DeviceTrapError: a run-time index was out of bounds.
        """
        parallel = self.parallel
        shared = bases.copy()
        _place(shared, parallel.first, self._shared)
        run = _runner(code, registers)
        trapped = [run(shared, parallel.first)]
        waiting = iter(parallel.parts)
        lock = threading.Lock()
        workers = min(num_threads(), len(parallel.parts))
        while len(self._own) < workers:
            self._own.append(np.empty(parallel.thread_bytes + 64, np.uint8))
        failures: list[BaseException] = []

        def work(memory: Bytes) -> None:
            own = shared.copy()
            mine = _runner(code, registers)
            try:
                with native.one_blas_thread():
                    while not failures:
                        with lock:
                            part = next(waiting, None)
                        if part is None:
                            return
                        _place(own, part, memory)
                        trapped.append(mine(own, part))
            except BaseException as error:  # noqa: BLE001 (raised again by the caller)
                failures.append(error)

        helpers = [threading.Thread(target=work, args=(self._own[i],)) for i in range(1, workers)]
        for helper in helpers:
            helper.start()
        work(self._own[0])
        for helper in helpers:
            helper.join()
        if failures:
            raise failures[0]
        stopped = next((word for word in trapped if word is not None), None)
        if stopped is not None:
            item = sources[stopped]
            raise DeviceTrapError(
                f"nisa.{item.opcode}: a run-time index is out of bounds of its tensor. Clamp the "
                "index, or use oob_mode.skip.",
                source=item.source,
            )


def _place(bases: npt.NDArray[np.uint64], part: Part, memory: Bytes) -> None:
    start = memory.ctypes.data + -memory.ctypes.data % 64
    bases[part.storages] = (start + part.offsets).astype(np.uint64)


def _runner(
    code: npt.NDArray[np.int64], registers: npt.NDArray[np.int64]
) -> Callable[[npt.NDArray[np.uint64], Part], int | None]:
    """run(bases, part): the word where it stopped, None if it ran to its end."""
    core: Any = native.library()
    sgemm = native.sgemm()
    accumulators = np.zeros((2, PARTITIONS), np.float32)

    def run(bases: npt.NDArray[np.uint64], part: Part) -> int | None:
        end = core.neuron_nki_run(
            code.ctypes.data,
            part.begin,
            part.end,
            bases.ctypes.data_as(ctypes.c_void_p),
            registers.ctypes.data,
            accumulators[0].ctypes.data,
            accumulators[1].ctypes.data,
            sgemm,
        )
        return None if end == part.end else int(end)

    return run

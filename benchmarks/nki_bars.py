"""NKI's bars: simulated attention against the CPU's, specialisation, and the modelled clock.

    python benchmarks/nki_bars.py [--quick]

Prints each figure beside its bar and exits with 1 if one is missed. Ratios are medians of samples
taken in turn, so that the host's noise hits both sides.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import torch

import nki
import nki.isa as nisa
import nki.language as nl
from neuron_chip.accuracy import nki as published
from nki.specialize import Call

_ROOT = Path(__file__).resolve().parent.parent


def example(name: str) -> Any:
    """A module of examples/nki."""
    path = _ROOT / "examples" / "nki" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def seconds(run: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def attention_arrays(length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q^T, k^T and v of one head of 128, bfloat16."""
    rng = np.random.default_rng(0)
    q, k, v = rng.standard_normal((3, length, 128)).astype(ml_dtypes.bfloat16)
    return np.ascontiguousarray(q.T), np.ascontiguousarray(k.T), v


class Bars:
    """Prints figures and remembers which bars were missed."""

    def __init__(self) -> None:
        self.missed = 0

    def check(self, what: str, value: float, unit: str, bar: float, *, at_least: bool) -> None:
        """One line: the figure, its bar, and whether it holds."""
        holds = value >= bar if at_least else value <= bar
        self.missed += not holds
        sign = ">=" if at_least else "<="
        print(
            f"{what:58s} {value:9.2f} {unit:3s} bar {sign} {bar:g}  {'ok' if holds else 'MISSED'}"
        )


def measure_attention(bars: Bars, samples: int) -> None:
    """Warm simulation against fp32 scaled_dot_product_attention and against step mode."""
    attention = example("attention").attention
    arrays = attention_arrays(4096)
    scale = 128**-0.5
    q, k, v = (
        torch.from_numpy(np.ascontiguousarray(array.astype(np.float32)))[None, None]
        for array in (arrays[0].T, arrays[1].T, arrays[2])
    )
    attention(*arrays, scale)
    ratios = []
    for _ in range(samples):
        host = seconds(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v))
        ratios.append(seconds(lambda: attention(*arrays, scale)) / host)
    bars.check(
        "attention 4096 x 128 bf16: replay / CPU fp32 SDPA",
        statistics.median(ratios), "x", 6.0, at_least=False,
    )  # fmt: skip
    steps = nki.simulate(attention, step=True)
    gains = []
    for _ in range(max(samples // 5, 1)):
        slow = seconds(lambda: steps(*arrays, scale))
        gains.append(slow / seconds(lambda: attention(*arrays, scale)))
    bars.check("the same: step mode / replay", statistics.median(gains), "x", 10.0, at_least=True)


def measure_specialisation(bars: Bars, samples: int) -> None:
    """Trace and verify a kernel of at least 20,000 instructions."""
    attention = example("attention").attention
    arrays = attention_arrays(8192)
    times, count = [], 0
    for _ in range(max(samples // 5, 1)):
        fresh = nki.jit(attention.function)
        call = Call.bind(fresh.function, (*arrays, 0.1), {})
        times.append(seconds(lambda fresh=fresh, call=call: fresh.specialize(call)))
        count = fresh.specialize(call).programs[0].num_instructions
    assert count >= 20_000, count
    bars.check(
        f"specialisation of {count} instructions", statistics.median(times), "s", 5.0,
        at_least=False,
    )  # fmt: skip


def blocked_matmul(lhs_t: Any, rhs: Any) -> Any:
    """Tiles of 128 x 512 in blocks of 16 x 2, K in blocks of 4; partial sums stay in SBUF."""
    (k_size, m_size), n_size = lhs_t.shape, rhs.shape[1]
    out = nl.ndarray((m_size, n_size), lhs_t.dtype, buffer=nl.shared_hbm)
    for m in range(0, m_size, 2048):
        for n in range(0, n_size, 1024):
            sums = [nl.ndarray((128, 1024), nl.float32) for _ in range(16)]
            for k in range(0, k_size, 512):
                left = [
                    nl.load(lhs_t[k + i : k + i + 128, m : m + 2048]) for i in range(0, 512, 128)
                ]
                right = [
                    nl.load(rhs[k + i : k + i + 128, n : n + 1024]) for i in range(0, 512, 128)
                ]
                for row, total in enumerate(sums):
                    for half in range(0, 1024, 512):
                        part = nl.ndarray((128, 512), nl.float32, buffer=nl.psum)
                        for a, b in zip(left, right, strict=True):
                            nisa.nc_matmul(
                                part, a[:, row * 128 : row * 128 + 128], b[:, half : half + 512]
                            )
                        into = total[:, half : half + 512]
                        if k == 0:
                            nisa.tensor_copy(into, part)
                        else:
                            nisa.tensor_tensor(into, into, part, nl.add)
            for row, total in enumerate(sums):
                nl.store(out[m + row * 128 : m + row * 128 + 128, n : n + 1024], total)
    return out


def measure_clock(bars: Bars) -> None:
    """The modelled clock against published measurements."""
    lhs_t, rhs = (np.empty(shape, np.float32) for shape in ((8192, 4096), (8192, 8192)))
    timeline = nki.profile(blocked_matmul)(lhs_t, rhs)
    error = 100 * abs(timeline.total_seconds / 28.3e-3 - 1)
    print(f"fp32 4096 x 8192 x 8192 on trn2: {timeline.total_seconds * 1e3:.2f} ms, published 28.3")
    bars.check("the same: error", error, "%", 3.0, at_least=False)
    errors = sorted(100 * abs(row.error) for row in published.MEASUREMENTS)
    bars.check(
        f"{len(errors)} published NKI kernels: median error",
        statistics.median(errors), "%", 12.0, at_least=False,
    )  # fmt: skip
    bars.check(
        "the same: 90th percentile", float(np.quantile(errors, 0.9)), "%", 30.0, at_least=False
    )


def main() -> int:
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three samples instead of fifteen")
    samples = 3 if parser.parse_args().quick else 15
    bars = Bars()
    measure_attention(bars, samples)
    measure_specialisation(bars, samples)
    measure_clock(bars)
    return 1 if bars.missed else 0


if __name__ == "__main__":
    sys.exit(main())

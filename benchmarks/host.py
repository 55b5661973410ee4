"""This host: what it can do at best, and the page that a benchmark leaves behind."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

REPORTS = Path(__file__).resolve().parent / "reports"
# What narrows the instructions that each library may use.
_NARROWING = ("NEURON_HOST_ISA", "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA")


def best_seconds(run: Callable[[], object], *, repeats: int = 7) -> float:
    """The shortest of some runs: a peak is what the host does undisturbed."""
    run()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


@dataclass(frozen=True, kw_only=True)
class Peaks:
    """Measured limits of this host with the current number of threads."""

    sgemm_flops_per_s: float
    copy_bytes_per_s: float
    """Bytes read plus bytes written by a copy between touched buffers."""
    read_bytes_per_s: float
    """Bytes of a sum over a touched buffer."""


def peaks() -> Peaks:
    """Measure them: a 2048 x 2048 fp32 product, a 256 MiB copy, a 256 MiB sum."""
    size = 2048
    a, b, c = (torch.randn(size, size) for _ in range(3))
    source, target = torch.ones(64 << 20), torch.ones(64 << 20)
    return Peaks(
        sgemm_flops_per_s=2 * size**3 / best_seconds(lambda: torch.mm(a, b, out=c)),
        copy_bytes_per_s=2 * source.nbytes / best_seconds(lambda: target.copy_(source)),
        read_bytes_per_s=source.nbytes / best_seconds(lambda: source.sum()),
    )


def heading(title: str, measured: Peaks) -> list[str]:
    """What the figures below it were measured on."""
    narrowed = [f"{name}={os.environ[name]}" for name in _NARROWING if name in os.environ]
    return [
        f"# {title}",
        "",
        f"{datetime.datetime.now():%Y-%m-%d %H:%M} · torch {torch.__version__} · "
        f"{torch.get_num_threads()} threads · {torch.backends.cpu.get_cpu_capability()}"
        + "".join(f" · {setting}" for setting in narrowed),
        "",
        f"Peaks of this host: fp32 matrix product {measured.sgemm_flops_per_s / 1e9:.0f} GFLOP/s, "
        f"copy {measured.copy_bytes_per_s / 1e9:.1f} GB/s (read + written), "
        f"read {measured.read_bytes_per_s / 1e9:.1f} GB/s.",
        "",
    ]


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    return [
        "| " + " | ".join(header) + " |",
        "|" + "---|" * len(header),
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
    ]


def verdict(what: str, figure: float, bar: float, *, at_least: bool, form: str = ".2f") -> str:
    """One line: a figure beside its bar."""
    met = figure >= bar if at_least else figure <= bar
    sign = ">=" if at_least else "<="
    return f"- {what}: {figure:{form}} (bar {sign} {bar:{form}}) {'met' if met else '**missed**'}"


def save(name: str, lines: Iterable[str]) -> Path:
    """Write the page to reports/, dated."""
    REPORTS.mkdir(exist_ok=True)
    path = REPORTS / f"{datetime.date.today():%Y-%m-%d}-{name}.md"
    path.write_text("\n".join(lines) + "\n")
    return path

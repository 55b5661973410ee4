"""Whole models: neuron beside the CPU device at the same dtype and in fp32, in one run.

Modes: forward, and a training step (forward, backward, AdamW). Precisions: fp32, bf16 (weights
and activations), autocast (fp32 weights, bf16 products). All are measured in turns.
"""

from __future__ import annotations

import argparse
import copy
import math
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from host import heading, peaks, save, table, verdict
from zoo import MODELS, Model

PRECISIONS = ("fp32", "bf16", "autocast")
# A CPU without bf16 instructions takes minutes for a step: one step is then all that it makes.
SLOW_S = 20.0


@dataclass(frozen=True, kw_only=True)
class Row:
    """Median seconds of a model in one mode and precision."""

    model: Model
    mode: str
    precision: str
    ours: float
    cpu: float
    cpu_fp32: float


def runner(model: Model, device: str, *, precision: str, train: bool) -> Callable[[], None]:
    torch.manual_seed(0)
    module = model.make()
    batch = model.batch()
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    module = copy.deepcopy(module).to(device=device, dtype=dtype).train(train)
    batch = tuple(
        x.to(device=device, dtype=dtype if x.is_floating_point() else None) for x in batch
    )
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4) if train else None

    def context() -> AbstractContextManager[object]:
        if precision == "autocast":
            return torch.autocast(device, dtype=torch.bfloat16)
        return nullcontext()

    def run() -> None:
        if optimizer is None:
            with torch.inference_mode(), context():
                float(model.loss(module, batch))
            return
        with context():
            loss = model.loss(module, batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        float(loss)

    return run


def in_turns(runs: Mapping[str, Callable[[], None]], *, samples: int) -> dict[str, float]:
    """Median seconds of each, taken in turns; a slow one is measured once."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(samples + 1):
        for name, run in runs.items():
            if len(times[name]) == 1 and times[name][0] > SLOW_S:
                continue
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
        if turn == 0:  # the first call of each warms up
            times = {name: t if t[0] > SLOW_S else [] for name, t in times.items()}
    return {name: statistics.median(values) for name, values in times.items()}


def measure(model: Model, *, precision: str, train: bool, samples: int) -> Row:
    runs = {"ours": runner(model, "neuron", precision=precision, train=train)}
    runs["cpu"] = runner(model, "cpu", precision=precision, train=train)
    if precision != "fp32":
        runs["cpu_fp32"] = runner(model, "cpu", precision="fp32", train=train)
    times = in_turns(runs, samples=samples)
    return Row(
        model=model,
        mode="step" if train else "forward",
        precision=precision,
        ours=times["ours"],
        cpu=times["cpu"],
        cpu_fp32=times.get("cpu_fp32", times["cpu"]),
    )


def geometric_mean(values: list[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))


def bars(rows: list[Row]) -> list[str]:
    lines = []
    steps = [row for row in rows if row.mode == "step" and row.precision == "bf16"]
    for row in steps:
        bar = 8.0 if row.model.convolutional else 20.0
        gain = row.cpu / row.ours
        lines.append(
            verdict(f"{row.model.name}, bf16 step, gain over CPU bf16", gain, bar, at_least=True)
        )
        if not row.model.convolutional:
            share = row.ours / row.cpu_fp32
            lines.append(
                verdict(f"{row.model.name}, bf16 step over CPU fp32", share, 1.1, at_least=False)
            )
    full = [row.ours / row.cpu for row in rows if row.precision == "fp32"]
    if full:
        lines.append(
            verdict("fp32 over CPU, geometric mean", geometric_mean(full), 0.85, at_least=False)
        )
        lines.append(verdict("fp32 over CPU, worst", max(full), 1.03, at_least=False))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=PRECISIONS)
    parser.add_argument(
        "--modes", nargs="+", choices=("forward", "step"), default=("forward", "step")
    )
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    limits = peaks()
    rows = []
    for model in MODELS:
        if options.only not in model.name:
            continue
        for mode in options.modes:
            for precision in options.precisions:
                row = measure(
                    model, precision=precision, train=mode == "step", samples=options.samples
                )
                rows.append(row)
                print(
                    f"{model.name:22} {mode:8} {precision:9} {row.ours * 1e3:9.1f} ms  "
                    f"cpu/ours {row.cpu / row.ours:7.2f}  fp32/ours {row.cpu_fp32 / row.ours:6.2f}",
                    flush=True,
                )
    lines = heading("Models on the host driver", limits)
    lines += table(
        ("model", "mode", "precision", "neuron ms", "CPU ms", "CPU fp32 ms", "CPU / neuron"),
        (
            (
                row.model.name,
                row.mode,
                row.precision,
                f"{row.ours * 1e3:.1f}",
                f"{row.cpu * 1e3:.1f}",
                f"{row.cpu_fp32 * 1e3:.1f}",
                f"{row.cpu / row.ours:.2f}",
            )
            for row in rows
        ),
    )
    lines += bars(rows)
    print("\n".join(bars(rows)))
    print(f"saved {save('models', lines).name}")


if __name__ == "__main__":
    main()

"""Cost of one small op from Python: neuron beside the CPU device, in one interleaved run.

Ops are small (32 x 32 fp32), so that what is measured is dispatch. Prints a table and the bars.
"""

from __future__ import annotations

import argparse
import copy
import statistics
from collections.abc import Callable, Iterable

import torch
from timing import medians
from torch import Tensor, nn
from torch.nn import functional

Op = Callable[[], object]

DIRECT_BAR = 0.7
BOXED_BAR = 1.6
STEP_BAR = 1.0
SIZE = 32


def direct_ops(device: str) -> dict[str, Op]:
    """Ops that have direct kernels, each closed over its operands on `device`."""
    torch.manual_seed(0)

    def on(tensor: Tensor) -> Tensor:
        return tensor.to(device)

    a, b = on(torch.randn(SIZE, SIZE)), on(torch.randn(SIZE, SIZE))
    positive = on(torch.rand(SIZE, SIZE) + 0.5)
    row = on(torch.randn(SIZE))
    batch = on(torch.randn(4, 16, 16))
    index = on(torch.randint(SIZE, (SIZE,)))
    columns = on(torch.randint(SIZE, (SIZE, SIZE)))
    mask = on(torch.rand(SIZE, SIZE) > 0.5)
    log_probabilities = torch.log_softmax(a, -1)
    aten = torch.ops.aten
    return {
        "a + b": lambda: a + b,
        "a + row": lambda: a + row,
        "a * 2": lambda: a * 2,
        "a - b": lambda: a - b,
        "a / b": lambda: a / b,
        "a.add_(b)": lambda: positive.add_(0.0),
        "a > b": lambda: a > b,
        "a == 0": lambda: a == 0,
        "neg": lambda: -a,
        "exp": lambda: torch.exp(a),
        "sqrt": lambda: torch.sqrt(positive),
        "tanh": lambda: torch.tanh(a),
        "sigmoid": lambda: torch.sigmoid(a),
        "relu": lambda: torch.relu(a),
        "gelu": lambda: functional.gelu(a),
        "silu": lambda: functional.silu(a),
        "threshold_backward": lambda: aten.threshold_backward(a, b, 0),
        "to(bfloat16)": lambda: a.to(torch.bfloat16),
        "clone": lambda: a.clone(),
        "zeros_like": lambda: torch.zeros_like(a),
        "fill_": lambda: positive.fill_(1.0),
        "mm": lambda: a @ b,
        "addmm": lambda: torch.addmm(row, a, b),
        "bmm": lambda: torch.bmm(batch, batch),
        "linear": lambda: functional.linear(a, b, row),
        "sum": lambda: a.sum(),
        "sum(-1)": lambda: a.sum(-1),
        "mean": lambda: a.mean(),
        "softmax": lambda: torch.softmax(a, -1),
        "log_softmax": lambda: torch.log_softmax(a, -1),
        "layer_norm": lambda: functional.layer_norm(a, (SIZE,), row, row),
        "embedding": lambda: functional.embedding(index, a),
        "index_select": lambda: torch.index_select(a, 0, index),
        "gather": lambda: torch.gather(a, 1, columns),
        "cat": lambda: torch.cat([a, b]),
        "where": lambda: torch.where(mask, a, b),
        "masked_fill": lambda: a.masked_fill(mask, 0.0),
        "nll_loss": lambda: functional.nll_loss(log_probabilities, index),
    }


def boxed_ops(device: str) -> dict[str, Op]:
    """Ops that run by the CPU's kernel on aliases."""
    torch.manual_seed(0)
    a, b = torch.randn(SIZE, SIZE).to(device), torch.randn(SIZE, SIZE).to(device)
    return {
        "cumsum": lambda: torch.cumsum(a, 0),
        "logaddexp": lambda: torch.logaddexp(a, b),
        "atan2": lambda: torch.atan2(a, b),
        "flip": lambda: torch.flip(a, (0,)),
        "tril": lambda: torch.tril(a),
    }


def training_step(device: str) -> Op:
    """One AdamW step of a three-layer MLP on 32 rows."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
    )
    model = copy.deepcopy(model).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    inputs, labels = torch.randn(32, 64).to(device), torch.randint(10, (32,)).to(device)

    def step() -> None:
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    return step


def compare(title: str, names: Iterable[str], ops: dict[str, dict[str, Op]]) -> list[float]:
    """Print one row per op; return the ratios neuron / cpu."""
    print(f"\n{title:24} {'cpu us':>9} {'neuron us':>10} {'ratio':>7}")
    ratios = []
    for name in names:
        times = medians({device: table[name] for device, table in ops.items()})
        ratio = times["neuron"] / times["cpu"]
        ratios.append(ratio)
        print(f"{name:24} {times['cpu'] * 1e6:9.2f} {times['neuron'] * 1e6:10.2f} {ratio:7.2f}")
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    torch.set_num_threads(parser.parse_args().threads)
    devices = ("cpu", "neuron")
    direct = {device: direct_ops(device) for device in devices}
    boxed = {device: boxed_ops(device) for device in devices}
    steps = {device: {"MLP + AdamW step": training_step(device)} for device in devices}
    with torch.no_grad():
        direct_ratios = compare("direct kernel", direct["cpu"], direct)
        boxed_ratios = compare("CPU kernel on aliases", boxed["cpu"], boxed)
    step_ratios = compare("training", steps["cpu"], steps)
    print()
    for what, ratio, bar in (
        (
            f"direct kernels, median of {len(direct_ratios)}",
            statistics.median(direct_ratios),
            DIRECT_BAR,
        ),
        ("a + b", direct_ratios[0], DIRECT_BAR),
        (
            f"CPU kernels on aliases, median of {len(boxed_ratios)}",
            statistics.median(boxed_ratios),
            BOXED_BAR,
        ),
        ("training step", step_ratios[0], STEP_BAR),
    ):
        verdict = "met" if ratio <= bar else "MISSED"
        print(f"{what}: {ratio:.2f} (bar {bar}) {verdict}")


if __name__ == "__main__":
    main()

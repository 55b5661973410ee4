"""What the modelled clock costs a program: a small GPT's training step with it and without it.

The two runs alternate step by step, so that noise of the host hits both alike. Off, the clock is
one load per operator; on, it must slow the step by less than 5 %.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from pathlib import Path

import torch
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from examples.demo.gpt import GPT, GPTConfig

BAR = 1.05
BATCH = 16
ROUNDS = 9
STEPS = 3


def main() -> int:
    torch.manual_seed(0)
    config = GPTConfig()
    model = GPT(config).to("neuron")
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    tokens = torch.randint(config.vocabulary, (BATCH, config.context + 1), device="neuron")

    def step() -> None:
        logits = model(tokens[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    def steps() -> float:
        begun = time.perf_counter()
        for _ in range(STEPS):
            step()
        torch.neuron.synchronize()
        return (time.perf_counter() - begun) / STEPS

    steps()
    with torch.neuron.measure():
        steps()  # prices each signature, once in the life of a process
    ratios, off_times, memory_ratios = [], [], []
    gc.disable()
    for _ in range(ROUNDS):
        off = steps()
        with torch.neuron.measure():
            on = steps()
        with torch.neuron.measure(memory=True):
            with_memory = steps()
        after = steps()
        off = (off + after) / 2
        ratios.append(on / off)
        memory_ratios.append(with_memory / off)
        off_times.append(off)
        gc.collect()
    ratio = statistics.median(ratios)
    with torch.neuron.measure() as measured:
        step()
    calls = sum(row.calls for row in measured.rows)
    print(f"step without the clock  {1e3 * statistics.median(off_times):.2f} ms, {calls} operators")
    print(f"with measure()          x {ratio:.3f}  (bar {BAR})")
    print(f"with memory=True        x {statistics.median(memory_ratios):.3f}")
    print(f"modelled step           {1e3 * measured.time:.2f} ms")
    return 0 if ratio < BAR else 1


if __name__ == "__main__":
    sys.exit(main())

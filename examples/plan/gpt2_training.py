"""Training steps of GPT-2 small in bf16 on one core.

python -m neuron_explorer plan examples/plan/gpt2_training.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.demo.gpt import GPT, GPTConfig

SMALL = GPTConfig(vocabulary=50257, context=1024, width=768, num_heads=12, num_layers=12)


def main() -> None:
    with torch.device("neuron"):
        model = GPT(SMALL)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4)
    for step in range(10):
        tokens = torch.randint(SMALL.vocabulary, (4, SMALL.context + 1), device="neuron")
        with torch.autocast("neuron"):
            logits = model(tokens[:, :-1])
            loss = functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()

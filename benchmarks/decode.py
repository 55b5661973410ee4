"""SmolLM2-135M writing text: tokens/s on neuron, beside the CPU device in bf16 and in fp32.

The real weights come from the package that the demo uses; its cache folder is shared.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

import torch
from host import heading, peaks, save, table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from examples.demo import downloads
from examples.demo.generate import QUESTIONS, Writer
from examples.demo.places import Stopwatch, places
from examples.demo.smollm2_weights import smollm2_folder
from transformers import AutoTokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    limits = peaks()
    cache = downloads.cache_folder()
    downloads.fetch([downloads.SMOLLM2], folder=cache / "downloads", on_done=lambda _: None)
    weights = smollm2_folder(downloads=cache / "downloads", weights=cache / "weights")
    prompt = AutoTokenizer.from_pretrained(weights)(QUESTIONS[2], return_tensors="pt").input_ids
    where = places("neuron")
    writers = {place.label: Writer(place, weights=weights) for place in where.in_turn(0)}
    rates: dict[str, list[float]] = {label: [] for label in writers}
    for turn in range(options.rounds + 1):
        for place in where.in_turn(turn):
            watch = Stopwatch()
            with watch.measure(place):
                written = writers[place.label].write(prompt, max_new_tokens=options.tokens)
            if turn > 0:  # the first round warms up
                rates[place.label].append(len(written) / watch.seconds[0])
    parameters = sum(p.numel() for p in writers[where.device.label].model.parameters())
    rows = []
    for label, values in rates.items():
        rate = statistics.median(values)
        width = 4 if "fp32" in label else 2
        share = rate * parameters * width / limits.read_bytes_per_s
        rows.append((label, f"{rate:.2f}", f"{share:.2f}"))
        print(f"{label:14} {rate:8.2f} tokens/s, weights read at {share:.2f} of the read peak")
    lines = heading("Decoding on the host driver", limits)
    lines += table(("place", "tokens/s", "share of the read peak"), rows)
    print(f"saved {save('decode', lines).name}")


if __name__ == "__main__":
    main()

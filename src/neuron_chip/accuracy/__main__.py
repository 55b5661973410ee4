"""Write docs/accuracy.md, or check that it is up to date."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from neuron_chip.accuracy.report import ALL, page, statistics


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 1 means that `--check` found an outdated page."""
    parser = argparse.ArgumentParser(prog="python -m neuron_chip.accuracy", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/accuracy.md"))
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args(arguments)
    text = page()
    if options.check:
        if options.output.exists() and options.output.read_text(encoding="utf-8") == text:
            return 0
        sys.stderr.write(f"{options.output} is outdated; run `make accuracy`.\n")
        return 1
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text, encoding="utf-8")
    groups = {
        "kernels and matrix products": ("GEMM", "kernel", "NKI kernel"),
        "whole models": ("model",),
    }
    for label, members in groups.items():
        count, middle, high = statistics([row for row in ALL if row.group in members])
        sys.stdout.write(
            f"{label}: {count} rows, median error {100 * middle:.1f} %, "
            f"90th percentile {100 * high:.1f} %\n"
        )
    sys.stdout.write(f"wrote {options.output}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

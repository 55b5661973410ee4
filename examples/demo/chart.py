"""A curve drawn with characters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

_EIGHTHS = " ▁▂▃▄▅▆▇█"


def chart(values: Sequence[float], *, title: str, width: int = 64, height: int = 8) -> str:
    """`values` as columns of blocks under `title`; each column is the mean of its share."""
    width = min(width, len(values))
    edges = [round(column * len(values) / width) for column in range(width + 1)]
    shares = [values[start:end] for start, end in pairwise(edges)]
    means = [sum(share) / len(share) for share in shares]
    low, high = min(means), max(means)
    span = (high - low) or 1.0
    # The lowest column keeps one eighth, so that the curve has no holes.
    levels = [1 + round((mean - low) / span * (8 * height - 1)) for mean in means]
    lines = [title]
    for row in reversed(range(height)):
        label = high if row == height - 1 else low if row == 0 else None
        axis = f"{label:6.2f} ┤" if label is not None else "       │"
        lines.append(axis + "".join(_EIGHTHS[min(8, max(0, level - 8 * row))] for level in levels))
    return "\n".join(lines)

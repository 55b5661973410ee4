"""Measurements as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_neuronx.clock.measurement import Measurement

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))


def seconds_text(seconds: float) -> str:
    """A time with three digits and a fitting unit."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns" if seconds else "0 s"


def bytes_text(num_bytes: float) -> str:
    """Bytes in a fitting unit."""
    for size, unit in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if num_bytes >= size:
            return f"{num_bytes / size:.2f} {unit}"
    return f"{num_bytes:.0f} B"


def table(title: str, sums: Mapping[str, float], total: float, *, most: int = 6) -> list[str]:
    """The largest entries with their share of `total`."""
    lines = [title]
    for name, seconds in list(sums.items())[:most]:
        share = 100 * seconds / total if total else 0.0
        lines.append(f"  {seconds_text(seconds):>9} {share:5.1f} %  {name or '(outside)'}")
    return lines


def measurement_text(m: Measurement) -> str:
    """Time, range, use of the chip, memory, and the largest entries of each breakdown."""
    low, high = m.range
    lines = [
        f"modelled time {seconds_text(m.time)} ({seconds_text(low)} to {seconds_text(high)}), "
        f"{100 * m.default_share:.0f} % of it by default rules",
        f"MFU {100 * m.mfu:.1f} %, MBU {100 * m.mbu:.1f} %, HBM peak {bytes_text(m.hbm_peak)}",
    ]
    lines += table("busy engines", m.breakdown.engine, m.time)
    lines += table("operators", m.breakdown.op, m.time)
    lines += table("modules", m.breakdown.module, m.time)
    lines += table("Python lines", m.breakdown.python_line, m.time)
    if m.peak is not None:
        lines.append("alive at the peak")
        lines += [
            f"  {bytes_text(row.num_bytes):>11}  {row.kind:<11} {row.module or '-'}  "
            f"{row.op or '-'}  {row.python_line}"
            for row in m.peak.live[:8]
        ]
    return "\n".join(lines)

"""The table that `torch.neuron.memory_summary` prints. Reads counters, asks nothing."""

from __future__ import annotations

from collections.abc import Mapping

from torch_neuronx.device.driver import platform

_BYTES = (
    ("Allocated memory", "allocated_bytes"),
    ("Active memory", "active_bytes"),
    ("Requested memory", "requested_bytes"),
    ("Reserved memory", "reserved_bytes"),
    ("Inactive split memory", "inactive_split_bytes"),
)
_COUNTS = (
    ("Allocations", "allocation"),
    ("Active blocks", "active"),
    ("Segments", "segment"),
    ("Inactive splits", "inactive_split"),
)
_POOLS = (("  large pool", "large_pool"), ("  small pool", "small_pool"))
_COLUMNS = ("current", "peak", "allocated", "freed")


def bytes_text(num_bytes: int) -> str:
    """For example "1.50 GiB"."""
    size = float(num_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024 or unit == "GiB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.2f} {unit}"
        size /= 1024
    raise AssertionError("unreachable")


def memory_summary_text(index: int, stats: Mapping[str, int], *, abbreviated: bool) -> str:
    """The table of one device."""
    machine = platform()
    title = (
        f"neuron:{index}  {machine.chip.name}, {bytes_text(machine.hbm_bytes_per_core)} HBM    "
        f"out of memory: {stats['num_ooms']}    retries: {stats['num_alloc_retries']}"
    )
    header = ("", "current", "peak", "total allocated", "total freed")
    rows: list[tuple[str, ...]] = [header]
    pools = (("", "all"),) if abbreviated else (("", "all"), *_POOLS)
    for statistics, in_bytes in ((_BYTES, True), (_COUNTS, False)):
        for label, statistic in statistics:
            for pool_label, pool in pools:
                values = (stats[f"{statistic}.{pool}.{column}"] for column in _COLUMNS)
                cells = tuple(bytes_text(value) if in_bytes else str(value) for value in values)
                rows.append((pool_label or label, *cells))
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    lines = [
        "  ".join(
            [row[0].ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        )
        for row in rows
    ]
    rule = "-" * max(len(title), *(len(line) for line in lines))
    return "\n".join([rule, title, rule, lines[0], rule, *lines[1:], rule])

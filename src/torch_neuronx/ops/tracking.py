"""What ran on the device and what of it the chip could not have run. Counting is done in C++."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from neuron_chip import Chip
from torch_neuronx import _C
from torch_neuronx.ops.dtypes import dtype_notes
from torch_neuronx.ops.unsupported import reasons_by_operator

# Below the operator's name, behind count and " x ".
_INDENT = " " * 13


@dataclass(frozen=True, kw_only=True)
class FallbackRow:
    """One operator that the chip could not run natively, or would run in fewer bits."""

    op: str
    reason: str
    count: int
    python_line: str
    """Where it was called first, "" if not from Python."""
    exact_here: bool
    """No fallback: the chip runs it, in fewer bits."""


@dataclass(frozen=True, kw_only=True)
class FallbackReport:
    """What would hurt on the real chip, of all operators since tracking was cleared."""

    rows: tuple[FallbackRow, ...]
    num_calls: int
    """Calls of any operator."""

    @property
    def num_fallback_calls(self) -> int:
        """Calls that the chip could not have run."""
        return sum(row.count for row in self.rows if not row.exact_here)

    def __str__(self) -> str:
        """The report as text, the most frequent first."""
        if self.num_calls == 0:
            return "No operator has run on neuron since tracking was cleared."
        share = 100.0 * self.num_fallback_calls / self.num_calls
        lines = [
            f"{self.num_calls} operator calls, {self.num_fallback_calls} ({share:.1f} %) of them "
            "could not run on the chip natively."
        ]
        for title, exact_here in (
            ("Would leave the chip", False),
            ("Would run in fewer bits", True),
        ):
            rows = [row for row in self.rows if row.exact_here == exact_here]
            if rows:
                lines += ["", title]
            for row in sorted(rows, key=lambda row: -row.count):
                where = f"  first at {row.python_line}" if row.python_line else ""
                lines.append(f"  {row.count:>8} x {row.op}{where}")
                lines += textwrap.wrap(
                    row.reason, 100, initial_indent=_INDENT, subsequent_indent=_INDENT
                )
        return "\n".join(lines)


def load_rows(chip: Chip) -> None:
    """Tell the dispatcher which operators and dtypes `chip` lacks."""
    operators = torch._C._dispatch_get_all_op_names()
    _C._set_op_reasons(reasons_by_operator(operators))
    _C._set_dtype_reasons(
        [(note.dtype, note.reason, note.exact_here) for note in dtype_notes(chip)]
    )


def get_executed_ops() -> list[str]:
    """Names of the operators that ran on neuron since `clear_op_tracking`, for example aten::mm."""
    return sorted(name for name, _ in _C._executed_ops())


def get_fallback_ops() -> list[str]:
    """Names of those that the chip could not have run natively. `fallback_report` says why."""
    return sorted({row.op for row in fallback_report().rows if not row.exact_here})


def clear_op_tracking() -> None:
    """Forget which operators ran and which fell back."""
    _C._clear_op_tracking()


def fallback_report() -> FallbackReport:
    """What would hurt on the real chip: operators, reasons, counts and Python lines."""
    rows = tuple(
        FallbackRow(op=op, reason=reason, count=count, python_line=line, exact_here=exact_here)
        for op, reason, count, line, exact_here in _C._fallbacks()
    )
    return FallbackReport(rows=rows, num_calls=sum(count for _, count in _C._executed_ops()))


_strict = False


def is_strict() -> bool:
    """Whether operators that the chip could not run raise."""
    return _strict


def set_strict(enabled: bool) -> None:
    """Raise for operators that the chip could not run (all threads), or only list them."""
    global _strict
    _C._set_fallback_mode("raise" if enabled else "record")
    _strict = enabled


@contextmanager
def strict(enabled: bool = True) -> Iterator[None]:
    """Within the block, raise for every operator that the chip could not run natively.

    The mode belongs to the process, not to the thread: backward runs on other threads.
    """
    before = _strict
    set_strict(enabled)
    try:
        yield
    finally:
        set_strict(before)

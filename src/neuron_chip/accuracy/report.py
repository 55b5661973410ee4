"""The accuracy page as Markdown, from the measurement rows. No figures live here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuron_chip.accuracy import collective, gemm, kernels, micro, models, nki
from neuron_chip.accuracy.measurement import Measurement, median, percentile
from neuron_chip.sources import SOURCES
from neuron_chip.stacks import EXPOSED_SHARE, EXPOSED_SHARE_OF_GRAPHS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ALL: tuple[Measurement, ...] = (
    *gemm.MEASUREMENTS,
    *kernels.MEASUREMENTS,
    *nki.MEASUREMENTS,
    *micro.MEASUREMENTS,
    *collective.MEASUREMENTS,
    *models.MEASUREMENTS,
)

_TITLES = {
    "GEMM": "Matrix products (one trn2 logical core)",
    "kernel": "Operators (one trn2 logical core)",
    "NKI kernel": "Tile kernels (one physical core)",
    "micro": "Single instructions and transfers (trn2)",
    "launch": "Launches and host copies",
    "collective": "Collectives",
    "model": "Whole models",
}

_INTRODUCTION = f"""# How far the model of the chip can be trusted

<!-- Written by `make accuracy`; edit src/neuron_chip/accuracy/ instead. -->

Every published measurement of Trainium that we know, beside what `neuron_chip` says about the same
work. Errors are (modelled - measured) / measured: positive means that the model is slower than the
chip was. Shapes are counted into work (`neuron_chip.counts`), work is priced with the rows of
`neuron_chip.chips` and `neuron_chip.stacks` (`neuron_chip.cost`); nothing is adjusted per row.

Rows marked **g** guided a general parameter, or state one, and prove little by themselves:

* clocks, array sizes, bandwidths and instruction formulas are AWS's; the fixed part of an
  instruction, the gap between matrix instructions and the cost of a DMA descriptor are arithmetic
  on AWS's profile pictures (the single-instruction rows, the naive and the fully blocked product);
* HBM reaches 90 % of its rate, as in the device copy;
* launch times per software stack come from the smallest operators, the chains and the busy chip;
* the share of the shorter engines' time that shows is {EXPOSED_SHARE:g} for operators and
  hand-written kernels, from the rows marked in the first two tables, and
  {EXPOSED_SHARE_OF_GRAPHS:g} for whole graphs that the compiler schedules, from two prefill rows;
* a collective's rate in a chip and its start-up over NeuronLink come from one row each; a gather's
  cost per element from another.

All rows were in sight while the model was written. Passes per function (softmax, erf, sin, AdamW,
the Mamba scan) are counted from an algorithm, and where several are plausible the count was
revised once towards the figure; overlap of graphs was rounded with the other serving rows in view.
Expect somewhat larger errors on figures that are not in these tables.

The range beside the model runs from perfect overlap of the engines to none, with a fifth of
margin for rates and fixed times.
"""


def statistics(rows: Sequence[Measurement], *, all_rows: bool = False) -> tuple[int, float, float]:
    """Number of rows, median and 90th percentile of their absolute errors."""
    errors = [abs(row.error) for row in rows if all_rows or not row.not_counted]
    return len(errors), median(errors), percentile(errors, 0.9)


def _summary_line(label: str, rows: Sequence[Measurement], *, all_rows: bool = False) -> str:
    count, middle, high = statistics(rows, all_rows=all_rows)
    bias = median([row.error for row in rows if all_rows or not row.not_counted])
    return (
        f"| {label} | {count} | {100 * middle:.1f} % | {100 * high:.1f} % | {100 * bias:+.1f} % |"
    )


def _select(keep: Callable[[Measurement], bool]) -> list[Measurement]:
    return [row for row in ALL if keep(row)]


def _summary() -> str:
    kernel_groups = ("GEMM", "kernel", "NKI kernel")
    lines = [
        "| rows | number | median error | 90th percentile | median signed error |",
        "|---|---|---|---|---|",
        _summary_line("kernels and matrix products", _select(lambda r: r.group in kernel_groups)),
        _summary_line(
            "the same without guides",
            _select(lambda r: r.group in kernel_groups and not r.guide),
        ),
    ]
    lines += [
        _summary_line(group, [row for row in ALL if row.group == group])
        for group in ("GEMM", "kernel", "NKI kernel", "micro", "launch", "collective")
    ]
    whole = _select(lambda r: r.group == "model")
    lines += [
        _summary_line("whole models", whole),
        _summary_line("whole models without guides", [row for row in whole if not row.guide]),
        _summary_line("whole models, also those not counted", whole, all_rows=True),
    ]
    ranged = [row for row in ALL if row.work and not row.not_counted]
    inside = sum(
        row.modelled().low_seconds <= row.seconds <= row.modelled().high_seconds for row in ranged
    )
    lines += [
        "",
        f"The measured time lies inside the model's range in {inside} of {len(ranged)} rows.",
    ]
    return "\n".join(lines)


def format_seconds(seconds: float) -> str:
    """Three significant digits with a fitting unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}" if seconds < 1e3 * size else f"{seconds:.0f} s"
    return f"{seconds / 1e-9:.3g} ns"


def _table(group: str) -> str:
    lines = [
        f"## {_TITLES[group]}",
        "",
        "| measurement | measured | modelled | error | range | bound by | source |",
        "|---|---|---|---|---|---|---|",
    ]
    notes: dict[str, int] = {}
    for row in _select(lambda r: r.group == group):
        time = row.modelled()
        mark = " **g**" if row.guide else ""
        if row.not_counted:
            number = notes.setdefault(row.not_counted, len(notes) + 1)
            mark += f" (not counted, note {number})"
        span = "-"
        if row.work:
            span = f"{format_seconds(time.low_seconds)} - {format_seconds(time.high_seconds)}"
        lines.append(
            f"| {row.name}{mark} | {format_seconds(row.seconds)} | {format_seconds(time.seconds)} "
            f"| {100 * row.error:+.1f} % | {span} | {time.bound} | {row.source} |"
        )
    for note, number in notes.items():
        lines += ["", f"Note {number}: {note}."]
    return "\n".join(lines)


_LIMITS = """## What the model misses

* **sin and cos of 16-bit types** take two to three times the passes that a range reduction needs;
  what the compiler emits for them is not public.
* **The widest output head** (248,320 features) loses half its speed above 1,024 tokens on the chip;
  the model sees no reason to.
* **Scores of several GB** (the 10,240-token attention without tiles) fall off a cliff of the
  compiler's, four times slower than their traffic.
* **Decode attention over a linear cache** with few long sequences runs at a third to half of what
  its instructions would need.
* **Serving engines' decode steps and short prompts** carry host work that is not modelled.
* **Collectives over several trn1 hosts** below 16 MB: a sample in the documentation shows 0.5 ms
  and more where hop latencies explain a quarter.
* **All-reduce of two cores of one chip** at large sizes reaches a third of the rate of four.
* trn3 has no published measurement with a shape: its rows rest on data-sheet facts alone.

Not modelled at all, and so not in the tables: scatter as the source ran it (the compiler hung),
index_add (row sizes not given), rotary embeddings run as several operators,
LTX-2 and MiMo (sizes not public), test thresholds (upper bounds, not measurements), figures whose
hardware is not named.
"""


def page() -> str:
    """The whole page."""
    used = sorted({key for row in ALL for key in row.source.split()})
    sources = "\n".join(f"* `{key}`: {SOURCES[key]}" for key in used)
    tables = "\n\n".join(_table(group) for group in _TITLES)
    return f"""{_INTRODUCTION}
## Summary

{_summary()}

{_LIMITS}
{tables}

## Sources

{sources}
"""

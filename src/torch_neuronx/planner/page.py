"""A plan as one HTML page without scripts or outside files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from torch_neuronx.clock.text import bytes_text, seconds_text
from torch_neuronx.planner.result import Plan, PlanResult
from torch_neuronx.planner.text import money

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; color: #1c2430;
  padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #dde3ea;
  overflow-wrap: anywhere; }
td.n, th.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.bar { background: #3b6fb6; height: .7rem; display: inline-block; border-radius: 2px; }
.bad { color: #a3242b; font-weight: 600; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
"""


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    cells = "".join(f'<th class="{"n" if i else ""}">{escape(n)}</th>' for i, n in enumerate(names))
    body = "".join(
        "<tr>"
        + "".join(f'<td class="{"n" if i else ""}">{cell}</td>' for i, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{cells}</tr>{body}</table>"


def _shares(title: str, seconds: Mapping[str, float], total: float) -> str:
    rows = []
    for name, value in list(seconds.items())[:12]:
        share = min(1.0, value / total) if total else 0.0
        bar = f'<span class="bar" style="width:{100 * share:.1f}px"></span>'
        rows.append((escape(name or "(outside)"), bar, seconds_text(value), f"{100 * share:.1f} %"))
    return f"<h3>{escape(title)}</h3>" + _table(("", "", "busy", "of the step"), rows)


def _summary(plan: Plan) -> str:
    rows = [
        (
            escape(f"{r.num_instances} x {r.instance}"),
            f"{seconds_text(r.step_seconds)} "
            f"({seconds_text(r.low_seconds)} to {seconds_text(r.high_seconds)})",
            f"{r.units_per_second:,.4g} {escape(r.unit)}/s",
            f"{100 * r.mfu:.1f} %",
            bytes_text(r.hbm_peak_bytes)
            + ("" if r.fits else ' <span class="bad">does not fit</span>'),
            money(r.usd_per_million_units),
        )
        for r in plan.results
    ]
    rows += [
        (
            escape(g.instance) + " (roofline, a best case)",
            seconds_text(g.step_seconds),
            f"{g.units_per_second:,.4g}",
            "",
            "" if g.fits else '<span class="bad">too small</span>',
            money(g.usd_per_million_units),
        )
        for g in plan.gpus
    ]
    return _table(("", "step", "throughput", "MFU", "HBM per core", "per million units"), rows)


def _details(result: PlanResult) -> str:
    alive = [
        (
            escape(f"{row['kind']}: {row['module'] or '-'} {row['op']} {row['python_line']}"),
            bytes_text(row["num_bytes"]),
        )
        for row in result.alive_at_peak
    ]
    return (
        f"<h2>{escape(result.instance)}, rank {result.rank} of {result.world_size}</h2>"
        f"<p>{100 * result.default_share:.0f} % of the time rests on default rules. "
        f"Price: {escape(result.price_source)}.</p>"
        + _shares("Engines", result.engine_seconds, result.step_seconds)
        + _shares("Operators", result.op_seconds, result.step_seconds)
        + _shares("Modules", result.module_seconds, result.step_seconds)
        + _shares("Python lines", result.line_seconds, result.step_seconds)
        + "<h3>Alive at the peak of HBM</h3>"
        + _table(("", "bytes"), alive)
    )


def plan_page(plan: Plan) -> str:
    """The whole page."""
    title = escape(f"{plan.script} {' '.join(plan.arguments)}".strip())
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
        f"<h1>{title}</h1><p>Modelled, not measured: see docs/accuracy.md.</p>"
        + _summary(plan)
        + "".join(_details(result) for result in plan.results)
        + "</html>\n"
    )

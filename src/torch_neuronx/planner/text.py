"""Plans and sweeps as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch_neuronx.clock.text import bytes_text, seconds_text

if TYPE_CHECKING:
    from torch_neuronx.planner.result import Plan, PlanResult
    from torch_neuronx.planner.sweep import Layout


def money(usd: float | None) -> str:
    """Dollars with three digits, "-" when there is no price."""
    return "-" if usd is None else f"${usd:,.3g}" if usd < 1000 else f"${usd:,.0f}"


def _one(result: PlanResult) -> list[str]:
    fits = "fits" if result.fits else "DOES NOT FIT"
    lines = [
        f"{result.num_instances} x {result.instance}, rank {result.rank} of {result.world_size}; "
        f"{result.software}, step found by {result.found_by}, "
        f"planned in {result.host_seconds:.1f} s",
        f"  step       {seconds_text(result.step_seconds)} "
        f"({seconds_text(result.low_seconds)} to {seconds_text(result.high_seconds)}), "
        f"{100 * result.default_share:.0f} % by default rules",
        f"  throughput {result.units_per_second:,.4g} {result.unit}/s, "
        f"MFU {100 * result.mfu:.1f} %, MBU {100 * result.mbu:.1f} %",
        f"  HBM peak   {bytes_text(result.hbm_peak_bytes)} of "
        f"{bytes_text(result.hbm_capacity_bytes)} per core: {fits}",
        "             "
        + ", ".join(f"{kind} {bytes_text(size)}" for kind, size in result.hbm_by_kind.items()),
        "  busy       "
        + ", ".join(
            f"{name} {100 * result.share(name):.0f} %" for name in list(result.engine_seconds)[:7]
        ),
        f"  cost       {money(result.usd_per_million_units)} per million {result.unit}"
        + (f" at {money(result.usd_per_hour)}/h" if result.usd_per_hour is not None else "")
        + f" ({result.price_source})",
        "  alive at the peak",
    ]
    if result.idle_cores:
        lines.insert(
            1, f"  {result.idle_cores} paid cores idle: --world-size {result.num_cores} uses all"
        )
    lines += [
        f"    {bytes_text(row['num_bytes']):>11}  {row['kind']:<11} {row['module'] or '-'}  "
        f"{row['op'] or '-'}  {row['python_line']}"
        for row in result.alive_at_peak[:5]
    ]
    lines.append("  longest operators")
    lines += [
        f"    {seconds_text(seconds):>9}  {name}"
        for name, seconds in list(result.op_seconds.items())[:5]
    ]
    return lines


def plan_text(plan: Plan) -> str:
    """One block per instance, then the GPU instances."""
    lines = [f"{plan.script} {' '.join(plan.arguments)}".rstrip()]
    for result in plan.results:
        lines += _one(result)
    if plan.gpus:
        lines.append("the same work on GPUs (roofline, a best case)")
        unit = plan.results[0].unit
        lines += [
            f"  {gpu.instance:<17} {seconds_text(gpu.step_seconds):>9}  "
            f"{gpu.units_per_second:>10,.4g} {unit}/s  "
            f"{money(gpu.usd_per_million_units):>8} per million"
            + ("" if gpu.fits else "  (its memory is too small)")
            for gpu in plan.gpus
        ]
    return "\n".join(lines)


def sweep_text(layouts: Sequence[Layout]) -> str:
    """The layouts, best first, then those that do not fit or fail."""
    lines = []
    for layout in layouts:
        name = " ".join(f"{axis}={value}" for axis, value in layout.values.items())
        result = layout.result
        if result is None:
            lines.append(f"  {name:<32} failed: {layout.error.splitlines()[0]}")
            continue
        lines.append(
            f"  {name:<32} {seconds_text(result.step_seconds):>9}  "
            f"{result.units_per_second:>10,.4g} {result.unit}/s  MFU {100 * result.mfu:4.1f} %  "
            f"HBM {bytes_text(result.hbm_peak_bytes):>10}  "
            f"{money(result.usd_per_million_units):>8} per million"
            + ("" if result.fits else "  DOES NOT FIT")
        )
    return "\n".join(lines)

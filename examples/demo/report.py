"""The outcome of all jobs for the terminal, as Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table as RichTable

from .results import Agreement, JobResult, Rate, Table


@dataclass(frozen=True, kw_only=True)
class Report:
    """Where and when the jobs ran, for how long, and what came out."""

    device: str
    date: str
    torch_version: str
    num_threads: int
    seconds: float
    jobs: Sequence[JobResult]

    @property
    def holds(self) -> bool:
        """Whether each job agrees with the CPU in fp32 as closely as it must."""
        return all(job.holds for job in self.jobs)

    def heading(self) -> str:
        """One line on the machine."""
        return (
            f"{self.device} · torch {self.torch_version} · {self.num_threads} host threads · "
            f"{self.date} · {self.seconds:.0f} s"
        )

    def verdict(self) -> str:
        """One sentence."""
        apart = [
            f"{job.name}: {agreement.what}"
            for job in self.jobs
            for agreement in job.agreements
            if not agreement.holds
        ]
        if apart:
            return f"Results differ from the CPU in fp32 by more than allowed ({'; '.join(apart)})."
        return "All results agree with the CPU in fp32."


def show(report: Report, console: Console) -> None:
    """Print what each job produced, then the two tables that sum it up."""
    for job in report.jobs:
        console.rule(f"[bold]{job.name}[/] · {job.model}")
        if job.chart:
            console.print(job.chart, highlight=False, markup=False)
        for table in job.tables:
            console.print(_drawn(table))
    console.rule("[bold]Summary")
    console.print(report.heading(), highlight=False)
    for table in (_speed(report.jobs), _agreement(report.jobs)):
        console.print(_drawn(table))
    console.print(report.verdict(), style="bold green" if report.holds else "bold red")


def save(report: Report, folder: Path) -> list[Path]:
    """Write `demo.json` and `demo.md` into `folder`; returns both paths."""
    folder.mkdir(parents=True, exist_ok=True)
    as_json, as_markdown = folder / "demo.json", folder / "demo.md"
    record = {**asdict(report), "holds": report.holds}
    as_json.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    as_markdown.write_text(markdown(report), encoding="utf-8")
    return [as_markdown, as_json]


def markdown(report: Report) -> str:
    """The report as a Markdown page."""
    parts = ["# Demo", report.heading(), _as_markdown(_speed(report.jobs))]
    parts += [_as_markdown(_agreement(report.jobs)), report.verdict()]
    for job in report.jobs:
        parts.append(f"## {job.name}: {job.model}")
        if job.chart:
            parts.append(f"```text\n{job.chart}\n```")
        parts += [_as_markdown(table) for table in job.tables]
    return "\n\n".join(parts) + "\n"


def _speed(jobs: Sequence[JobResult]) -> Table:
    first = jobs[0]
    header = ["job", "unit", *(rate.place for rate in (first.device, first.cpu, first.reference))]
    rows = [
        [job.name, job.unit]
        + [_number(rate) for rate in (job.device, job.cpu, job.reference)]
        + [_ratio(job.device, job.cpu), _ratio(job.device, job.reference)]
        for job in jobs
    ]
    header += [f"beside {first.cpu.place}", f"beside {first.reference.place}"]
    return Table(title="Speed", header=header, rows=rows)


def _number(rate: Rate) -> str:
    speed = rate.per_second
    return f"{speed:,.0f}" if speed >= 100 else f"{speed:.1f}" if speed >= 10 else f"{speed:.2f}"


def _ratio(ours: Rate, theirs: Rate) -> str:
    return f"{ours.per_second / theirs.per_second:.2f}x"


def _agreement(jobs: Sequence[JobResult]) -> Table:
    first = jobs[0]
    header = ["job", "distance", first.device.place, first.cpu.place, "allowed", ""]
    rows = [
        [job.name, agreement.what, *_distances(agreement)]
        for job in jobs
        for agreement in job.agreements
    ]
    return Table(title=f"Distance from {first.reference.place}", header=header, rows=rows)


def _distances(agreement: Agreement) -> list[str]:
    cpu = "" if agreement.cpu is None else format(agreement.cpu, agreement.form)
    return [
        format(agreement.device, agreement.form),
        cpu,
        format(agreement.bound, agreement.form),
        "holds" if agreement.holds else "FAILS",
    ]


def _drawn(table: Table) -> RichTable:
    drawn = RichTable(title=table.title, title_justify="left", box=box.SIMPLE_HEAD)
    for number, name in enumerate(table.header):
        numeric = all(_is_number(row[number]) for row in table.rows)
        drawn.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in table.rows:
        drawn.add_row(*(cell.replace("[", r"\[") for cell in row))
    return drawn


def _is_number(cell: str) -> bool:
    return not cell or cell[0].isdigit()


def _as_markdown(table: Table) -> str:
    lines = [list(table.header), ["---"] * len(table.header), *table.rows]
    # A cell is one line; a bar would end it.
    drawn = [
        "| " + " | ".join(cell.replace("|", r"\|").replace("\n", "<br>") for cell in line) + " |"
        for line in lines
    ]
    return "\n".join([f"**{table.title}**", "", *drawn])

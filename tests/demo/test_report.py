"""The report tells the truth about rates and agreement."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

pytest.importorskip("rich", reason="the demo's requirements are not installed")

from examples.demo.places import places
from examples.demo.report import Report, markdown, save, show
from examples.demo.results import Agreement, JobResult, Rate, Table
from rich.console import Console


def agreement(distance: float) -> Agreement:
    return Agreement(what="error", device=distance, cpu=0.01, bound=0.05, form=".1%")


def report_of(distance: float) -> Report:
    job = JobResult(
        name="Job",
        model="model",
        unit="tokens/s",
        device=Rate(place="neuron bf16", amount=100, seconds=2.0),
        cpu=Rate(place="CPU bf16", amount=100, seconds=8.0),
        reference=Rate(place="CPU fp32", amount=100, seconds=1.0),
        agreements=[agreement(distance)],
        tables=[Table(title="Answers", header=["text"], rows=[["a [list] | of\ntwo lines"]])],
        chart="curve",
    )
    return Report(
        device="neuron",
        date="2026-01-01 12:00",
        torch_version="2.13.0",
        num_threads=2,
        seconds=10.0,
        jobs=[job],
    )


@pytest.mark.parametrize(
    ("distance", "holds"), [(0.05, True), (0.051, False), (float("nan"), False)]
)
def test_an_agreement_holds_up_to_its_bound(distance: float, holds: bool):
    assert agreement(distance).holds is holds


def test_the_verdict_names_what_is_apart():
    assert report_of(0.01).holds
    assert "Job: error" in report_of(0.9).verdict()
    assert not report_of(0.9).holds


def test_markdown_has_rates_ratios_and_one_line_per_row():
    page = markdown(report_of(0.01))
    # 100 tokens in 2, 8 and 1 seconds: 50, 12.5 and 100 tokens/s; ratios 50 / 12.5 and 50 / 100.
    assert "| Job | tokens/s | 50.0 | 12.5 | 100 | 4.00x | 0.50x |" in page
    assert "| Job | error | 1.0% | 1.0% | 5.0% | holds |" in page
    assert r"| a [list] \| of<br>two lines |" in page


def test_the_terminal_shows_brackets_of_generated_text_as_they_are():
    console = Console(record=True, width=100, file=io.StringIO())
    show(report_of(0.9), console)
    shown = console.export_text()
    assert "a [list] | of" in shown
    assert "FAILS" in shown


def test_both_files_are_saved(tmp_path: Path):
    as_markdown, as_json = save(report_of(0.01), tmp_path / "report")
    assert as_markdown.read_text().startswith("# Demo")
    record = json.loads(as_json.read_text())
    assert record["holds"] is True
    assert record["jobs"][0]["device"] == {"place": "neuron bf16", "amount": 100, "seconds": 2.0}


def test_places_take_turns_in_beginning():
    three = places("cpu")
    assert {three.in_turn(turn)[0].label for turn in range(3)} == {
        three.device.label,
        three.cpu.label,
        three.reference.label,
    }
    assert len(three.in_turn(1)) == 3

"""Trace files: what is written is read, and damage is explained."""

from __future__ import annotations

import json

import pytest

from neuron_chip.trace import (
    Event,
    Metadata,
    Trace,
    TraceFormatError,
    from_json,
    read,
    to_json,
    write,
)

TRACE = Trace(
    metadata=Metadata(chip="trn2", instance="trn2.3xlarge", lnc=2, writer="test"),
    events=(
        Event(
            id=1, kind="op", name="aten::mm", lane="stream", start_ns=10, duration_ns=5, flops=8.0
        ),
        Event(
            id=2,
            kind="instruction",
            name="nc_matmul",
            lane="tensor",
            start_ns=12.5,
            duration_ns=2,
            modelled=True,
            depends_on=(1,),
            python_file="train.py",
            python_line=7,
            extra={"tile": [128, 512]},
        ),
    ),
)


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_file_gives_back_what_was_written(tmp_path, name):
    path = tmp_path / name
    write(TRACE, path)
    assert read(path) == TRACE
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")


def test_columns_of_defaults_are_left_out():
    columns = to_json(TRACE)["events"]
    assert "rank" not in columns
    assert columns["depends_on"] == [[], [1]]


def test_empty_trace_survives():
    empty = Trace(metadata=Metadata(chip="trn2"), events=())
    assert from_json(to_json(empty)) == empty
    assert empty.duration_ns == 0


def test_duration_spans_all_events():
    assert TRACE.duration_ns == 5
    assert [event.end_ns for event in TRACE] == [15, 14.5]


def test_columns_and_metadata_of_later_writers_are_ignored():
    data = to_json(TRACE)
    data["events"]["colour"] = ["red", "blue"]
    data["metadata"]["weather"] = "fine"
    assert from_json(data) == TRACE


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "chrome"}, "schema 'chrome'"),
        ({"version": 2}, "version 2; this reader knows 1 to 1"),
        ({"num_events": 3}, "2 of 3 entries; the file is damaged"),
    ],
)
def test_foreign_and_damaged_files_are_explained(tmp_path, change, message):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(to_json(TRACE) | change))
    with pytest.raises(TraceFormatError, match=message):
        read(path)


def test_file_that_is_not_json_is_explained(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text("hello")
    with pytest.raises(TraceFormatError, match="is not JSON"):
        read(path)
    path.write_text("[]")
    with pytest.raises(TraceFormatError, match="holds a list"):
        read(path)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [("kind", "ops", "kind 'ops'"), ("lane", "gpu", "lane 'gpu'"), ("duration_ns", -1, "negative")],
)
def test_event_refuses_what_no_viewer_could_show(field, value, message):
    good = {"id": 1, "kind": "op", "name": "x", "lane": "stream", "start_ns": 0, "duration_ns": 0}
    with pytest.raises(ValueError, match=message):
        Event(**(good | {field: value}))

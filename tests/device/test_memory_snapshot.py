"""Memory snapshots: PyTorch's own tools read them."""

from __future__ import annotations

import pickle

import pytest
import torch
from torch.cuda import _memory_viz

MIB = 1024**2


@pytest.fixture
def history():
    torch.neuron.memory._record_memory_history()
    yield
    torch.neuron.memory._record_memory_history(None)


def test_a_snapshot_shows_live_blocks_with_the_python_line(history):
    x = torch.empty(3 * MIB, dtype=torch.uint8, device="neuron")
    snapshot = torch.neuron.memory._snapshot()
    address = x.untyped_storage().data_ptr()
    block = next(
        block
        for segment in snapshot["segments"]
        for block in segment["blocks"]
        if block["address"] == address
    )
    assert block["state"] == "active_allocated"
    assert block["requested_size"] == 3 * MIB
    assert block["size"] >= 3 * MIB
    assert any(frame["filename"] == __file__ for frame in block["frames"])


def test_blocks_fill_their_segment():
    x = torch.empty(1000, device="neuron")
    for segment in torch.neuron.memory_snapshot():
        assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]
        addresses = [block["address"] for block in segment["blocks"]]
        assert addresses == sorted(addresses)
    assert x.numel() == 1000


def test_the_history_tells_allocation_and_release(history):
    x = torch.empty(5 * MIB, dtype=torch.uint8, device="neuron")
    address = x.untyped_storage().data_ptr()
    del x
    trace = torch.neuron.memory._snapshot()["device_traces"][0]
    actions = [entry["action"] for entry in trace if entry.get("addr") == address]
    alloc = actions.index("alloc")
    assert actions[alloc:][:3] == ["alloc", "free_requested", "free_completed"]


def test_without_stacks_there_are_no_frames():
    torch.neuron.memory._record_memory_history(context=None)
    try:
        x = torch.empty(5 * MIB, dtype=torch.uint8, device="neuron")
        trace = torch.neuron.memory._snapshot()["device_traces"][0]
        assert [entry["frames"] for entry in trace if entry["action"] == "alloc"][-1:] == [[]]
        assert x.numel() == 5 * MIB
    finally:
        torch.neuron.memory._record_memory_history(None)


def test_only_the_newest_entries_are_kept():
    torch.neuron.memory._record_memory_history(max_entries=4)
    try:
        for _ in range(10):
            torch.empty(5 * MIB, dtype=torch.uint8, device="neuron")
        assert len(torch.neuron.memory._snapshot()["device_traces"][0]) == 4
    finally:
        torch.neuron.memory._record_memory_history(None)


def test_the_dumped_file_opens_in_the_visualizer(history, tmp_path):
    x = torch.empty(3 * MIB, dtype=torch.uint8, device="neuron")
    torch.empty(7 * MIB, dtype=torch.uint8, device="neuron")
    path = tmp_path / "snapshot.pickle"
    torch.neuron.memory._dump_snapshot(str(path))
    with path.open("rb") as file:
        snapshot = pickle.load(file)
    assert "MiB" in _memory_viz.segsum(snapshot)
    assert "del b # 7.0MiB" in _memory_viz.trace(snapshot)
    assert "<html" in _memory_viz.trace_plot(snapshot).lower()
    assert "<html" in _memory_viz.segment_plot(snapshot).lower()
    assert x.numel() == 3 * MIB


def test_a_wrong_mode_is_refused():
    with pytest.raises(ValueError, match="'everything'"):
        torch.neuron.memory._record_memory_history("everything")

"""Streams and events: CUDA's surface, torch.accelerator's view of it, and order."""

from __future__ import annotations

import pytest
import torch


def test_a_new_stream_is_not_the_default_one():
    stream = torch.neuron.Stream()
    assert stream != torch.neuron.default_stream()
    assert stream.device == torch.device("neuron", torch.neuron.current_device())
    assert isinstance(stream, torch.Stream)


def test_the_default_stream_is_current_and_has_id_0():
    assert torch.neuron.current_stream() == torch.neuron.default_stream()
    assert torch.neuron.default_stream().stream_id == 0


def test_a_block_sends_work_to_the_stream_and_restores():
    stream = torch.neuron.Stream()
    with torch.neuron.stream(stream):
        assert torch.neuron.current_stream() == torch.accelerator.current_stream() == stream
    assert torch.neuron.current_stream() == torch.neuron.default_stream()


def test_a_block_of_another_devices_stream_makes_that_device_current():
    stream = torch.neuron.Stream("neuron:2")
    with torch.neuron.stream(stream):
        assert torch.neuron.current_device() == 2
        assert torch.ones(1, device="neuron").device.index == 2
    assert torch.neuron.current_device() == 0
    assert torch.neuron.current_stream(2) == torch.neuron.default_stream(2)


def test_blocks_nest():
    first, second = torch.neuron.Stream(), torch.neuron.Stream()
    with torch.neuron.stream(first):
        with torch.neuron.stream(second):
            assert torch.neuron.current_stream() == second
        assert torch.neuron.current_stream() == first


def test_no_stream_changes_nothing():
    with torch.neuron.stream(None):
        assert torch.neuron.current_stream() == torch.neuron.default_stream()


def test_set_stream_is_seen_by_the_accelerator():
    stream = torch.neuron.Stream()
    torch.neuron.set_stream(stream)
    try:
        assert torch.accelerator.current_stream() == stream
    finally:
        torch.neuron.set_stream(torch.neuron.default_stream())


def test_work_on_another_stream_gives_the_same_values():
    x = torch.randn(64, 64, device="neuron")
    stream = torch.neuron.Stream()
    stream.wait_stream(torch.neuron.current_stream())
    with torch.neuron.stream(stream):
        y = x
        for _ in range(20):
            y = y + x
    torch.neuron.current_stream().wait_stream(stream)
    expected = x.cpu()
    for _ in range(20):
        expected = expected + x.cpu()
    assert torch.equal(y.cpu(), expected)


def test_a_synchronised_stream_is_idle():
    stream = torch.neuron.Stream()
    with torch.neuron.stream(stream):
        torch.ones(1000, device="neuron").exp().sum()
    stream.synchronize()
    assert stream.query()


def test_streams_are_equal_by_identity_of_the_queue_whatever_their_class():
    stream = torch.neuron.Stream()
    plain = torch.Stream(
        stream_id=stream.stream_id,
        device_index=stream.device_index,
        device_type=stream.device_type,
    )
    assert stream == plain
    assert hash(stream) == hash(plain)
    assert stream != torch.neuron.Stream()


def test_a_stream_prints_what_it_is():
    assert repr(torch.neuron.default_stream(1)) == (
        "torch.neuron.Stream(device=neuron:1, stream_id=0)"
    )


def test_the_native_handle_is_one_per_queue():
    stream = torch.neuron.Stream()
    assert stream.neuron_stream == stream.neuron_stream != 0
    assert stream.neuron_stream != torch.neuron.Stream().neuron_stream


def test_priorities_exist():
    assert torch.neuron.Stream.priority_range() == (0, -1)
    assert torch.neuron.Stream(priority=-1) != torch.neuron.Stream(priority=0)


def test_an_event_is_done_after_synchronize():
    event = torch.neuron.Event()
    torch.ones(10, device="neuron").neg()
    event.record()
    event.synchronize()
    assert event.query()


def test_elapsed_time_is_real_time_in_milliseconds():
    start, end = torch.neuron.Event(enable_timing=True), torch.neuron.Event(enable_timing=True)
    start.record()
    x = torch.randn(256, 256, device="neuron")
    for _ in range(10):
        x = x @ x
    end.record()
    end.synchronize()
    assert 0 < start.elapsed_time(end) < 60_000
    assert start.elapsed_time(end) == pytest.approx(-end.elapsed_time(start))


def test_elapsed_time_needs_timing_and_recording():
    plain = torch.neuron.Event()
    timed = torch.neuron.Event(enable_timing=True)
    with pytest.raises((RuntimeError, ValueError), match="record"):
        timed.elapsed_time(torch.neuron.Event(enable_timing=True))
    plain.record()
    timed.record()
    torch.neuron.synchronize()
    with pytest.raises((RuntimeError, ValueError), match="timing"):
        plain.elapsed_time(timed)


def test_record_event_gives_an_event_of_ours():
    event = torch.neuron.current_stream().record_event()
    assert isinstance(event, torch.neuron.Event)
    event.synchronize()
    assert event.query()


def test_events_and_streams_of_torch_mix_with_ours():
    ours, plain = torch.neuron.Stream(), torch.Stream("neuron")
    event = torch.Event("neuron")
    event.record(ours)
    plain.wait_event(event)
    ours.wait_event(plain.record_event())
    ours.wait_stream(plain)
    ours.synchronize()
    assert ours.query()


def test_recording_again_does_not_change_an_earlier_wait():
    first, second = torch.neuron.Stream(), torch.neuron.Stream()
    event = torch.neuron.Event()
    x = torch.zeros(1000, device="neuron")
    torch.neuron.synchronize()
    with torch.neuron.stream(first):
        x.add_(1)
    event.record(first)
    second.wait_event(event)
    event.record(second)  # would be a deadlock if the wait followed the event
    with torch.neuron.stream(second):
        x.mul_(3)
    torch.neuron.synchronize()
    assert x.cpu().unique().tolist() == [3.0]


def test_an_event_does_not_cross_processes():
    with pytest.raises(NotImplementedError, match="do not cross processes"):
        torch.neuron.Event(interprocess=True)


def test_record_stream_takes_our_stream():
    stream = torch.neuron.Stream()
    x = torch.ones(100, device="neuron")
    with torch.neuron.stream(stream):
        y = x + 1
    x.record_stream(stream)
    del x
    stream.synchronize()
    assert y.sum().item() == 200

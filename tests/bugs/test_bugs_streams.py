"""Bugs that users of other out-of-tree devices reported, 19 to 28: copies, streams, memory."""

from __future__ import annotations

import ctypes
import threading

import pytest
import torch

from python_process import output_of

SIZE = 1 << 18


def heavy(x, times=20):
    """Enough queued work that what follows is enqueued before it ends."""
    for _ in range(times):
        x = x * 1.0001 + 0.1
    return x


def test_19_a_source_freed_after_a_non_blocking_copy_does_not_matter():
    """pytorch#189690: the copy to the device read pageable memory that had been freed."""
    copies = []
    for number in range(30):
        source = torch.full((SIZE // 8,), float(number))
        copies.append(source.to("neuron", non_blocking=True))
        del source
        torch.full((SIZE // 8,), -1.0)
    for number, copy in enumerate(copies):
        assert (copy == number).all().item()


@pytest.mark.parametrize("pinned", [False, True])
def test_20_a_non_blocking_copy_to_the_host_is_right_after_an_event(pinned):
    """pytorch#139550: a non-blocking copy gave random values."""
    x = heavy(torch.ones(SIZE, device="neuron"))
    target = torch.empty(SIZE, pin_memory=pinned)
    target.copy_(x, non_blocking=True)
    event = torch.Event(device="neuron")
    event.record()
    event.synchronize()
    expected = heavy(torch.ones(SIZE))
    assert torch.equal(target, expected)


def test_20_a_non_blocking_to_cpu_into_pageable_memory_is_right_at_once():
    """pytorch#139550: nothing tells the user to wait when the memory is not pinned."""
    x = heavy(torch.ones(SIZE, device="neuron"))
    assert torch.equal(x.to("cpu", non_blocking=True), heavy(torch.ones(SIZE)))


def test_21_many_writes_of_single_elements_keep_their_order():
    """pytorch#122016: copies of scalars were reordered."""
    x = torch.zeros(3, device="neuron")
    x[1] = 1
    x[2] = 3
    assert x.tolist() == [0.0, 1.0, 3.0]
    for number in range(200):
        x[number % 3] = number
        x[(number + 1) % 3] += 0.5
    expected = torch.zeros(3)
    expected[1], expected[2] = 1, 3
    for number in range(200):
        expected[number % 3] = number
        expected[(number + 1) % 3] += 0.5
    assert torch.equal(x.cpu(), expected)


@pytest.mark.parametrize(
    "make_event",
    [
        lambda: torch.Event(),
        lambda: torch.Event("neuron"),
        lambda: torch.Event(device="neuron", enable_timing=True),
        lambda: torch.neuron.Event(),
        lambda: torch.neuron.Event(enable_timing=True),
    ],
)
@pytest.mark.parametrize(
    "get_stream",
    [
        lambda: None,
        lambda: torch.accelerator.current_stream(),
        lambda: torch.neuron.current_stream(),
        lambda: torch.neuron.default_stream(),
        lambda: torch.Stream("neuron"),
        lambda: torch.neuron.Stream(),
    ],
)
def test_22_every_event_records_every_stream(make_event, get_stream):
    """pytorch#173792: Event.record(torch.accelerator.current_stream()) crashed."""
    event, stream = make_event(), get_stream()
    event.record() if stream is None else event.record(stream)
    event.wait() if stream is None else event.wait(stream)
    event.synchronize()
    assert event.query()


def test_23_memory_used_by_a_side_stream_is_not_reused_too_early():
    """pytorch#178027: record_stream did not hold back the block."""
    side = torch.neuron.Stream()
    for number in range(20):
        x = torch.full((SIZE,), float(number), device="neuron")
        side.wait_stream(torch.neuron.current_stream())
        with torch.neuron.stream(side):
            y = heavy(x, 5)
            total = x.sum()
        x.record_stream(side)
        del x
        overwritten = torch.full((SIZE,), -1.0, device="neuron")
        side.synchronize()
        assert total.item() == number * SIZE
        assert torch.equal(y.cpu(), heavy(torch.full((SIZE,), float(number)), 5))
        assert (overwritten == -1).all().item()


def test_24_copies_between_and_within_devices_follow_the_queue():
    """vllm-ascend#116, #7676: device-to-device copies overtook what filled their source."""
    x = torch.zeros(SIZE, device="neuron:0")
    y = torch.zeros(SIZE, device="neuron:1")
    for number in range(10):
        x.fill_(number)
        y.copy_(x)
        x.fill_(-1)
        assert (y == number).all().item()
    z = torch.arange(SIZE, device="neuron")
    z[1:] = z[:-1].clone()
    assert torch.equal(z[1:].cpu(), torch.arange(SIZE - 1))


@pytest.mark.slow
def test_25_a_data_loader_pins_for_the_device():
    """pytorch#124908: pin_memory chose another device than the accelerator."""
    code = """
import torch
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.arange(64.0).reshape(32, 2), torch.arange(32))
if __name__ == "__main__":
    seen = []
    for x, y in DataLoader(data, batch_size=8, num_workers=2, pin_memory=True):
        assert x.is_pinned() and y.is_pinned()
        seen += y.to("neuron", non_blocking=True).tolist()
    print(seen == list(range(32)))
"""
    assert output_of(code) == "True"


def test_26_foreign_work_on_the_native_handle_comes_after_the_queue():
    """megagdn-pto#17: a launch on the raw stream overtook queued ops, order k3, k1, k2."""
    x = heavy(torch.zeros(SIZE, device="neuron"))
    x.fill_(1)
    assert torch.neuron.current_stream().neuron_stream != 0  # drains what is queued
    ctypes.memset(x.data_ptr(), 0, SIZE * 4)
    x.add_(5)
    assert (x == 5).all().item()


def test_26_threads_with_their_own_streams_do_not_disturb_each_other():
    """Ascend/pytorch#140: one consumer thread per device served all streams."""
    expected = heavy(torch.ones(SIZE // 8))
    results: dict[int, bool] = {}

    def work(number):
        with torch.neuron.stream(torch.neuron.Stream()):
            results[number] = all(
                torch.equal(heavy(torch.ones(SIZE // 8, device="neuron")).cpu(), expected)
                for _ in range(5)
            )

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(4), True)


def test_27_writing_into_a_fresh_cache_row_by_row_keeps_the_other_rows():
    """vllm-fork#2093: in-place writes into a freshly allocated buffer corrupted it."""
    expected = torch.zeros(32, 4, 8)
    cache = torch.zeros(32, 4, 8, device="neuron")
    for position in range(32):
        row = torch.full((4, 8), float(position))
        cache[position] = row.to("neuron")
        expected[position] = row
        index = torch.tensor([position // 2], device="neuron")
        cache[index] += 1
        expected[position // 2] += 1
        assert torch.equal(cache.cpu(), expected)


def test_28_recording_an_event_again_does_not_change_an_earlier_wait():
    """A wait belongs to the recording it saw: the reference backend gets this wrong."""
    side = torch.neuron.Stream()
    event = torch.neuron.Event()
    x = torch.zeros(SIZE, device="neuron")
    x = heavy(x)
    event.record()
    side.wait_event(event)
    with torch.neuron.stream(side):
        seen = x + 0
    event.record(torch.neuron.current_stream())
    side.synchronize()
    assert torch.equal(seen.cpu(), heavy(torch.zeros(SIZE)))


def test_28_a_stream_is_busy_until_its_last_work_is_done():
    """The reference backend says "idle" while the last task still runs."""
    stream = torch.neuron.Stream()
    x = torch.ones(SIZE, device="neuron")
    torch.neuron.synchronize()
    for _ in range(20):
        with torch.neuron.stream(stream):
            y = heavy(x, 5)
        event = stream.record_event()
        if stream.query():
            assert event.query()
        event.synchronize()
        assert stream.query()
    assert torch.equal(y.cpu(), heavy(torch.ones(SIZE), 5))

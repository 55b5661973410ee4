"""Streams and events with CUDA's surface, over torch.Stream and torch.Event."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import torch

from torch_neuronx import _C
from torch_neuronx.device.cores import Device, device_index
from torch_neuronx.errors import ClockError


def _device_type() -> int:
    return int(torch._C._autograd.DeviceType.PrivateUse1.value)


class Stream(torch.Stream):
    """A queue of work of one device: ordered in itself, free against other streams.

    Args:
        device: where; the current device by default.
        priority: lower is more urgent; -1 and 0 exist.
    """

    def __new__(cls, device: Device = None, priority: int = 0, **kwargs: Any) -> Self:
        if "stream_id" in kwargs:
            return super().__new__(cls, priority=priority, **kwargs)
        where = torch.device("neuron", device_index(device))
        return super().__new__(cls, device=where, priority=priority, **kwargs)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The least and the most urgent priority."""
        return 0, -1

    @property
    def neuron_stream(self) -> int:
        """The native handle of the queue, for libraries; work queued so far goes first."""
        return _C._stream_native_handle(self.stream_id, self.device_index, True)

    def record_event(self, event: torch.Event | None = None) -> torch.Event:
        """Record `event`, or a new one, behind the work queued so far, and return it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_stream(self, other: torch.Stream) -> None:
        """Let later work of this stream wait for what `other` has queued so far."""
        self.wait_event(other.record_event())

    def __repr__(self) -> str:
        return f"torch.neuron.Stream(device={self.device}, stream_id={self.stream_id})"


class Event(torch.Event):
    """A mark in a stream's work.

    Recording it again never changes what earlier waits wait for.

    Args:
        enable_timing: keep the time, for `elapsed_time`.
        blocking: accepted; waits never spin for long.
        interprocess: refused; events do not cross processes.
    """

    def __new__(
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> Self:
        if interprocess:
            raise NotImplementedError(
                "neuron events do not cross processes. Use a process group or a "
                "torch.multiprocessing event."
            )
        return super().__new__(
            cls, device=torch.device("neuron"), enable_timing=enable_timing, blocking=blocking
        )

    def elapsed_time(self, other: torch.Event) -> float:
        """Milliseconds of real time from this event to `other`; both need `enable_timing`."""
        # torch.Event's own method refuses subclasses as its argument.
        return _C._event_elapsed_ms(self, other)

    def modelled_elapsed_time(self, other: torch.Event) -> float:
        """Milliseconds from this event to `other` on the modelled chip.

        Raises:
            ClockError: one of the two was not recorded while the clock ran.
        """
        start, end = _C._event_modelled_ns(self), _C._event_modelled_ns(other)
        for name, when in (("first", start), ("second", end)):
            if when < 0:
                raise ClockError(
                    f"The {name} event was not recorded while the modelled clock ran. Record both "
                    "inside torch.neuron.measure(), or under the driver 'dry'."
                )
        return float(1e-6 * (end - start))

    def __repr__(self) -> str:
        state = "recorded" if self.event_id else "not recorded"
        return f"torch.neuron.Event({state})"


def current_stream(device: Device = None) -> Stream:
    """The stream that this thread's work on `device` goes to."""
    stream = torch._C._accelerator_getStream(device_index(device))
    return _as_neuron(stream)


def default_stream(device: Device = None) -> Stream:
    """The stream that work on `device` goes to unless another is set."""
    return Stream(stream_id=0, device_index=device_index(device), device_type=_device_type())


def set_stream(stream: torch.Stream | None) -> None:
    """Make `stream`, and its device, the current one of this thread."""
    if stream is not None:
        torch._C._accelerator_setStream(stream)


def _as_neuron(stream: torch.Stream) -> Stream:
    return Stream(
        stream_id=stream.stream_id,
        device_index=stream.device_index,
        device_type=stream.device_type,
    )


class StreamContext:
    """Send this thread's work to a stream within a block; None changes nothing.

    The stream's device becomes current. Both are restored, also the stream that the stream's
    device had before.
    """

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream
        self._previous: tuple[int, torch.Stream] | None = None

    def __enter__(self) -> None:
        if self.stream is None:
            return
        self._previous = _C._current_device(), current_stream(self.stream.device_index)
        set_stream(self.stream)

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._previous is None:
            return
        device, stream = self._previous
        self._previous = None
        set_stream(stream)
        _C._set_device(device)


def stream(stream: torch.Stream | None) -> StreamContext:
    """Send this thread's work to `stream` within a block."""
    return StreamContext(stream)

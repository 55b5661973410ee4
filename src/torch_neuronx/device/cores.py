"""The devices, which are logical cores: how many, which is current, wait for one."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any

import torch

from torch_neuronx import _C
from torch_neuronx.errors import BadForkError, WrongDeviceError

Device = torch.device | str | int | None

_initialized = False
_initialization_lock = threading.Lock()


def device_index(device: Device = None) -> int:
    """The index that `device` means; the current one when it names none.

    Raises:
        WrongDeviceError: it is a device of another type.
    """
    if device is None:
        return _C._current_device()
    if isinstance(device, int):
        return device
    if isinstance(device, str):
        device = torch.device(device)
    if device.type != "neuron":
        raise WrongDeviceError(
            f"Expected a neuron device, got {device}. Pass 'neuron', 'neuron:1' or an index."
        )
    return _C._current_device() if device.index is None else device.index


def is_available() -> bool:
    """Whether there is at least one neuron device. Never raises, touches nothing."""
    return _C._device_count() > 0


def device_count() -> int:
    """Number of logical cores that this process may use."""
    return _C._device_count()


def current_device() -> int:
    """Index of the current device of this thread."""
    return _C._current_device()


def set_device(device: Device) -> None:
    """Make `device` the current one of this thread. A negative index changes nothing."""
    index = device_index(device)
    if index >= 0:
        _C._set_device(index)


def synchronize(device: Device = None) -> None:
    """Wait until all work on all streams of `device` is done; raises the errors of that work."""
    _C._synchronize(device_index(device))


def can_device_access_peer(device: Device, peer_device: Device) -> bool:
    """Whether `device` reads the memory of `peer_device` directly: on one host each core does."""
    first, second = device_index(device), device_index(peer_device)
    for index in (first, second):
        if not 0 <= index < device_count():
            raise WrongDeviceError(
                f"There is no neuron:{index}; this process has {device_count()} devices."
            )
    return first != second


def _is_in_bad_fork() -> bool:
    return _C._is_in_bad_fork()


def _lazy_init() -> None:
    global _initialized
    if _C._is_in_bad_fork():
        raise BadForkError(
            "Cannot re-initialize neuron in a forked subprocess: the parent had used the device, "
            "and its worker threads do not exist in the child. Use the 'spawn' start method: "
            "torch.multiprocessing.set_start_method('spawn')."
        )
    with _initialization_lock:
        _initialized = True


def init() -> None:
    """Initialise the device now. Done by itself on first use."""
    _lazy_init()


def is_initialized() -> bool:
    """Whether the device has been used or initialised, in this process."""
    return (_initialized or _C._is_used()) and not _C._is_in_bad_fork()


def is_current_stream_capturing() -> bool:
    """Whether the current stream records a graph; graph capture does not exist here."""
    return False


class device:
    """Make a device the current one within a block. None and negative indices change nothing."""

    def __init__(self, device: Device) -> None:
        self.idx = -1 if device is None else device_index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = _C._exchange_device(self.idx)

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.idx >= 0:
            _C._maybe_exchange_device(self.prev_idx)


class device_of(device):
    """Make the device of a tensor or storage the current one within a block, if it is neuron."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_neuron else -1)


def _exchange_device(device: int) -> int:
    return _C._current_device() if device < 0 else _C._exchange_device(device)


def _maybe_exchange_device(device: int) -> int:
    return _C._maybe_exchange_device(device)

"""Every change made to PyTorch's own classes, each with its reason.

Nothing else patches torch, but for `compiler.default_backend`, which is a layer above.

Each keeps the old behaviour for every other device.
"""

from __future__ import annotations

import enum
import functools
import threading
from typing import Any

import torch
from torch import _tensor_str
from torch.utils.dlpack import DLDeviceType

from torch_neuronx import _C


def apply() -> None:
    """Apply all patches; called once, by the registration."""
    _dlpack_device()
    _dlpack_waits()
    _autocast_default_dtype()
    _printing()


def _dlpack_device() -> None:
    # Tensor.__dlpack_device__ compares the device type with the literal "privateuse1", which a
    # renamed backend never equals: "Unknown device type neuron for Dlpack".
    original = torch.Tensor.__dlpack_device__

    @functools.wraps(original)
    def __dlpack_device__(self: torch.Tensor) -> tuple[enum.IntEnum, int]:
        if self.device.type != "neuron":
            return original(self)
        return DLDeviceType.kDLExtDev, self.get_device()

    torch.Tensor.__dlpack_device__ = __dlpack_device__  # type: ignore[method-assign]


def _dlpack_waits() -> None:
    # The consumer of a capsule may read it on the host at once and knows nothing of our streams,
    # so the work queued so far is finished first. PyTorch does the like for CUDA only.
    original = torch.Tensor.__dlpack__

    @functools.wraps(original)
    def __dlpack__(self: torch.Tensor, **kwargs: Any) -> Any:
        if self.device.type == "neuron":
            torch.accelerator.current_stream(self.device).synchronize()
        return original(self, **kwargs)

    torch.Tensor.__dlpack__ = __dlpack__  # type: ignore[method-assign]


def _autocast_default_dtype() -> None:
    # The default dtype of autocast is a thread-local that starts as float16 in every thread.
    # Trainium's is bfloat16, so each thread sets it before its first autocast.
    torch.set_autocast_dtype("neuron", torch.bfloat16)
    thread = threading.local()
    thread.is_set = True
    original = torch.amp.autocast.__init__

    @functools.wraps(original)
    def __init__(self: torch.amp.autocast, device_type: str, *args: Any, **kwargs: Any) -> None:
        if device_type == "neuron" and not getattr(thread, "is_set", False):
            torch.set_autocast_dtype("neuron", torch.bfloat16)
            thread.is_set = True
        original(self, device_type, *args, **kwargs)

    torch.amp.autocast.__init__ = __init__  # type: ignore[method-assign]


def _printing() -> None:
    # Printing computes: it compares, sorts out finite values and widens to float64. That is no
    # work of the program, so it must not show in op tracking nor raise in strict mode. PyTorch
    # prints from a CPU copy too for devices where printing would compile.
    original = _tensor_str._tensor_str

    @functools.wraps(original)
    def print_from_host(self: torch.Tensor, indent: int) -> str:
        if self.device.type == "neuron" and _C._is_dry():
            return f"(no values, size={tuple(self.shape)})"
        printed: str = original(self.cpu() if self.device.type == "neuron" else self, indent)
        return printed

    _tensor_str._tensor_str = print_from_host

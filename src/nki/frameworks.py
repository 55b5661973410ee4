"""Tensors of a framework: its device module runs the kernel, and calls back into this package.

The module is `torch.neuron`, by its function `run_tile_kernel(kernel, args, kwargs)`. Nothing is
imported here, so either package may be loaded first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

Runner = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


def runner_for(arrays: Iterable[Any]) -> Runner | None:
    """Who runs a kernel on these arrays; None for NumPy arrays and plain tensors of the CPU."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    plain = (torch.Tensor, torch.nn.Parameter)
    if all(
        not isinstance(value, torch.Tensor) or (type(value) in plain and value.device.type == "cpu")
        for value in arrays
    ):
        return None
    return getattr(getattr(torch, "neuron", None), "run_tile_kernel", None)


def announce() -> None:
    """Tell the framework, if it is loaded, that kernels may now be part of captured graphs."""
    torch = sys.modules.get("torch")
    ready = getattr(getattr(torch, "neuron", None), "take_tile_kernels", None)
    if ready is not None:
        ready()

"""Kernels of NKI as operators of PyTorch.

    kernel(x), wrap_nki(kernel)[grid](x)  --operators-->  torch.ops.nki.<kernel>_<digest>
    @nki_op("ns::name", ...)              --decorator-->  torch.ops.ns.name, which calls kernels

`launch` runs one on the memory of neuron tensors. nki itself is imported when the first kernel
comes, not before: `import torch` stays quick.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch

from torch_neuronx.tile_kernel.decorator import nki_op, wrap_nki

if TYPE_CHECKING:
    from nki.jit import Kernel

__all__ = ["attach", "nki_op", "wrap_nki"]


def attach() -> None:
    """Let torch.neuron run kernels: nki asks the tensors' device module."""
    device: Any = torch.get_device_module("neuron")
    device.run_tile_kernel = _run
    device.take_tile_kernels = _take
    if "nki.jit" in sys.modules:
        _take()


def _run(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from torch_neuronx.tile_kernel.operators import call

    return call(kernel, args, kwargs)


def _take() -> None:
    from torch_neuronx.tile_kernel.capture import allow_in_graph

    allow_in_graph()

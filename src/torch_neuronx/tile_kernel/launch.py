"""Run a specialised kernel on tensors: on the memory of neuron tensors through their host aliases.

Queued like every operation: it starts when earlier work of the current stream is done. Nothing is
copied if the tensors are contiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from nki import arrays
from nki.interface import Result, made
from nki.jit import Specialization, replay
from nki.simulator import native
from torch_neuronx import _C
from torch_neuronx.errors import TileKernelError

# Formats that PyTorch has under another name or not at all; these keep their bits.
_DTYPES = {
    "tfloat32": torch.float32,
    "float8_e4m3": torch.uint8,
    "float8_e5m2_x4": torch.uint32,
    "float8_e4m3fn_x4": torch.uint32,
    "float4_e2m1fn_x4": torch.uint16,
}

HostCall = Callable[[list[torch.Tensor]], list[torch.Tensor]]


def torch_dtype(name: str) -> torch.dtype:
    """The PyTorch dtype of NKI's `name`: float8_e4m3 (largest 240) and packed formats as bits."""
    found = _DTYPES.get(name) or getattr(torch, name)
    assert isinstance(found, torch.dtype)
    return found


def common_device(kernel_name: str, tensors: dict[str, torch.Tensor]) -> torch.device:
    """The one device of all tensors.

    Raises:
        TileKernelError: they are on several; the message lists them.
    """
    devices = {tensor.device for tensor in tensors.values()}
    if len(devices) > 1:
        listed = ", ".join(
            f"{path} {list(tensor.shape)} on {tensor.device}" for path, tensor in tensors.items()
        )
        wanted = next((d for d in sorted(devices, key=str) if d.type == "neuron"), "one device")
        raise TileKernelError(
            f"Kernel {kernel_name} got tensors on several devices: {listed}. "
            f"Move all of them to {wanted} with .to()."
        )
    return devices.pop()


def run_on_device(
    host_call: HostCall, tensors: Sequence[torch.Tensor], device: torch.device, name: str
) -> list[torch.Tensor]:
    """Call with the host aliases of neuron tensors, and make the results neuron tensors."""
    if device.type != "neuron":
        return host_call(list(tensors))
    return _C._run_on_host(host_call, list(tensors), device.index or 0, name)


def host_call_of(specialization: Specialization, paths: Sequence[str]) -> HostCall:
    """The kernel as a function of host tensors, given in the order of `paths`."""
    results = list(made(specialization.interface.results))
    programs = specialization.programs
    assert programs is not None
    sources = list(_sources(programs[0].result, specialization.interface.results))

    def call(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        where = tensors[0].device
        outputs = [
            torch.empty(about.shape, dtype=torch_dtype(about.dtype), device=where)
            for about in results
        ]
        if where.type == "meta":
            return outputs  # a dry run: shapes, no values
        bound = [arrays.argument(tensor) for tensor in tensors]
        given = {
            about.allocation: arrays.argument(output).memory
            for about, output in zip(results, outputs, strict=True)
            if about.allocation is not None and output.numel()
        }
        memory = {path: item.memory for path, item in zip(paths, bound, strict=True)}
        with native.one_blas_thread():
            machine = replay(specialization, memory, given)
        for item in bound:
            if item.write_back is not None:
                item.write_back()
        seen: set[int] = set()
        for output, about, source in zip(outputs, results, sources, strict=True):
            if about.allocation is None or about.allocation in seen:
                values = machine.array(source).copy()
                output.copy_(arrays.result(values, about.dtype, as_torch=True))
            else:
                seen.add(about.allocation)
        return outputs

    return call


def _sources(result: Any, described: Any) -> Any:
    if isinstance(described, Result):
        yield result
    elif isinstance(described, list | tuple):
        for item, about in zip(result, described, strict=True):
            yield from _sources(item, about)
    elif isinstance(described, dict):
        for name, about in described.items():
            yield from _sources(result[name], about)

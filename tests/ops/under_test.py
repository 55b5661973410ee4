"""The device under test, and copies of CPU inputs on it.

A copy keeps everything that an op can see: strides, storage offset, tensors that share a storage,
lazy conjugation, leaves of the autograd graph.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor

DEVICE = os.environ.get("TORCH_NEURONX_TEST_DEVICE", "neuron")


class Placement:
    """Copies of one call's arguments; tensors that share a storage still do after it."""

    def __init__(self, device: str = DEVICE, *, shift: int = 0) -> None:
        """Make no copy yet. `shift` more elements of storage lie before each tensor's data."""
        self._device = device
        self._shift = shift
        self._tensors: dict[int, tuple[Tensor, Tensor]] = {}
        self._storages: dict[tuple[int, int], Tensor] = {}

    def __call__(self, value: Any) -> Any:
        """The value on the device: tensors copied, device names replaced, the rest as it is."""
        if isinstance(value, Tensor):
            return self._tensor(value)
        if isinstance(value, torch.device):
            return torch.device(self._device)
        if isinstance(value, torch.Generator):
            return torch.Generator(self._device).manual_seed(value.initial_seed())
        if isinstance(value, dict):
            return {
                key: self._device if key == "device" and isinstance(item, str) else self(item)
                for key, item in value.items()
            }
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(self, value))
        if isinstance(value, list | tuple):
            return type(value)(map(self, value))
        return value

    def _tensor(self, tensor: Tensor) -> Tensor:
        known = self._tensors.get(id(tensor))
        if known is None:
            # The original stays alive with its copy, or its id could come back for another.
            known = tensor, self._copy(tensor)
            self._tensors[id(tensor)] = known
        return known[1]

    def _copy(self, tensor: Tensor) -> Tensor:
        plain = tensor.layout is torch.strided and not tensor.is_quantized and not tensor.is_nested
        if not plain or type(tensor) not in (Tensor, torch.nn.Parameter):
            return tensor.detach().to(self._device).requires_grad_(tensor.requires_grad)
        copy = torch.empty(0, dtype=tensor.dtype, device=self._device)
        with torch.no_grad():
            copy.set_(
                self._storage(tensor).untyped_storage(),
                tensor.storage_offset() + self._shift,
                tensor.size(),
                tensor.stride(),
            )
        if tensor.is_conj():
            copy = torch._conj(copy)
        if tensor.is_neg():
            copy = torch._neg_view(copy)
        if isinstance(tensor, torch.nn.Parameter):
            return torch.nn.Parameter(copy, requires_grad=tensor.requires_grad)
        return copy.requires_grad_(tensor.requires_grad)

    def _storage(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        before = self._shift * tensor.element_size()
        key = (storage._cdata, before)
        if key not in self._storages:
            content = torch.empty(0, dtype=torch.uint8).set_(storage)
            padding = torch.zeros(before, dtype=torch.uint8)
            self._storages[key] = torch.cat([padding, content]).to(self._device)
        return self._storages[key]


_WIDE = {
    torch.float32: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float16: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}


class Truth(Placement):
    """Copies in double precision on the CPU: what the result would be without rounding."""

    def __init__(self) -> None:
        super().__init__("cpu")

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.dtype):
            return _WIDE.get(value, value)
        return super().__call__(value)

    def _copy(self, tensor: Tensor) -> Tensor:
        wide = _WIDE.get(tensor.dtype, tensor.dtype)
        return tensor.detach().to(wide, copy=True).requires_grad_(tensor.requires_grad)

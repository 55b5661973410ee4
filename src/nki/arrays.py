"""NumPy and torch arrays as kernel arguments and results, without importing torch."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nki import dtypes
from nki.errors import NkiValidationError

Array = npt.NDArray[Any]

_NARROWED = {
    np.dtype(np.int64): "int32",
    np.dtype(np.uint64): "uint32",
    np.dtype(np.float64): "float32",
}


@dataclass(frozen=True, slots=True)
class Argument:
    """An array argument: its type as a tensor, and its memory."""

    shape: tuple[int, ...]
    dtype: dtypes.DType
    memory: npt.NDArray[np.uint8]
    write_back: Callable[[], None] | None
    """Copies the memory back into the caller's array, when it is not shared with it."""
    is_torch: bool


def is_array(value: Any) -> bool:
    """True for NumPy arrays and torch tensors."""
    return isinstance(value, np.ndarray) or is_torch(value)


def is_torch(value: Any) -> bool:
    """True for torch tensors."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def describe(value: Any) -> tuple[tuple[int, ...], dtypes.DType]:
    """Shape and dtype of an array argument, without touching its contents."""
    if is_torch(value):
        name = str(value.dtype).removeprefix("torch.")
        name = {"int64": "int32", "float64": "float32", "uint64": "uint32"}.get(name, name)
        shape = tuple(int(size) for size in value.shape)  # symbolic sizes become what they are
        return shape, dtypes.canonical(_TORCH_NAMES.get(name, name))
    array = value
    return tuple(array.shape), _NARROWED.get(array.dtype) or dtypes.canonical(array.dtype)


_TORCH_NAMES = {"float4_e2m1fn_x2": "float4_e2m1fn_x4"}


def argument(value: Any) -> Argument:
    """Bind an array; its memory is shared with the kernel where the layout allows it."""
    shape, dtype = describe(value)
    if is_torch(value):
        array = _torch_bytes(value)
        writable = True
    else:
        array = value
        writable = bool(value.flags.writeable)
    stored = dtypes.row(dtype).numpy
    direct = (
        array.flags.c_contiguous
        and array.dtype.itemsize == stored.itemsize
        and array.dtype not in _NARROWED
    )
    if direct and array.size:
        memory = array.reshape(-1).view(np.uint8)
        if not writable:
            memory = memory.copy()
        return Argument(shape, dtype, memory, None, is_torch(value))
    if array.dtype in _NARROWED:
        converted = dtypes.cast(np.ascontiguousarray(array), dtype)
    else:
        converted = np.array(array, order="C", copy=True)
    flat = converted.reshape(-1)

    def write_back() -> None:
        array[...] = flat.reshape(array.shape)

    return Argument(
        shape, dtype, flat.view(np.uint8), write_back if writable else None, is_torch(value)
    )


def _torch_bytes(tensor: Any) -> Array:
    """A torch CPU tensor's memory as integers of the same width."""
    torch = sys.modules["torch"]
    if tensor.device.type != "cpu":
        raise NkiValidationError(
            f"A kernel got a tensor of shape {list(tensor.shape)} on {tensor.device}, and no "
            'framework that runs it there is loaded. Import torch_neuronx and use device "neuron", '
            "or pass CPU tensors."
        )
    plain = tensor.detach()
    if plain.dtype in (torch.float64, torch.int64, torch.float32, torch.int32):
        return np.asarray(plain.numpy())
    width = plain.element_size()
    integer = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[width]
    return np.asarray(plain.view(integer).numpy())


def result(values: Array, dtype: dtypes.DType, *, as_torch: bool) -> Any:
    """A result array of the kind that the caller uses."""
    if dtype == "bool":
        values = values.view(np.bool_)
    if not as_torch:
        return values
    torch = sys.modules["torch"]
    kind = dtypes.row(dtype).kind
    if kind != "float" or dtype in ("float32", "tfloat32"):
        return torch.from_numpy(values)
    name = {"float8_e4m3": "uint8"}.get(dtype, dtype)  # torch has no 240-maximum e4m3
    integer = {1: np.uint8, 2: np.int16, 4: np.int32}[values.dtype.itemsize]
    return torch.from_numpy(values.view(integer)).view(getattr(torch, name))

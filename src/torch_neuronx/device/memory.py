"""Device memory: what is allocated and reserved, limits, snapshots. The allocator is C++."""

from __future__ import annotations

import pickle
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any, Literal

from torch_neuronx import _C
from torch_neuronx.device.cores import Device, device_index
from torch_neuronx.device.memory_summary import memory_summary_text

# AWS's flat names, by the CUDA-style name of the same number.
_FLAT_NAMES = {
    "allocated_bytes": "allocated_bytes.all.current",
    "reserved_bytes": "reserved_bytes.all.current",
    "active_bytes": "active_bytes.all.current",
    "num_tensor_frees": "allocation.all.freed",
}


def memory_stats_as_nested_dict(device: Device = None) -> dict[str, Any]:
    """All counters of `device`, nested as `torch.cuda.memory_stats_as_nested_dict`."""
    return _C._memory_stats(device_index(device))


def memory_stats(device: Device = None) -> OrderedDict[str, int]:
    """All counters of `device` in one flat dictionary.

    CUDA's keys, "allocated_bytes.all.peak" and so on, for the statistics `allocation`, `segment`,
    `active`, `inactive_split`, and their `_bytes`; pools `all`, `large_pool`, `small_pool`; and
    `current`, `peak`, `allocated`, `freed`. Beside them AWS's short names: `allocated_bytes`,
    `reserved_bytes`, `active_bytes`, `num_tensor_frees`, `num_alloc_retries`, `num_ooms`.
    """
    flat: dict[str, int] = {}

    def flatten(prefix: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                flatten(f"{prefix}.{key}" if prefix else key, inner)
        else:
            flat[prefix] = value

    flatten("", memory_stats_as_nested_dict(device))
    for short, long in _FLAT_NAMES.items():
        flat[short] = flat[long]
    return OrderedDict(sorted(flat.items()))


def memory_allocated(device: Device = None) -> int:
    """Bytes that live tensors occupy."""
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device: Device = None) -> int:
    """Most bytes that live tensors occupied since the peak was last reset."""
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device: Device = None) -> int:
    """Bytes of HBM that the allocator holds, in use or cached."""
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device: Device = None) -> int:
    """Most bytes of HBM that the allocator held since the peak was last reset."""
    return memory_stats(device)["reserved_bytes.all.peak"]


def memory_active(device: Device = None) -> int:
    """Bytes of live tensors, and of freed ones that another stream still uses."""
    return memory_stats(device)["active_bytes.all.current"]


def max_memory_active(device: Device = None) -> int:
    """Most active bytes since the peak was last reset."""
    return memory_stats(device)["active_bytes.all.peak"]


def reset_peak_memory_stats(device: Device = None) -> None:
    """Let the peaks start again from the present values."""
    _C._reset_peak_memory_stats(device_index(device))


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Let the totals `allocated` and `freed`, and the event counts, start again from zero."""
    _C._reset_accumulated_memory_stats(device_index(device))


def reset_max_memory_allocated(device: Device = None) -> None:
    """The old name of `reset_peak_memory_stats`."""
    reset_peak_memory_stats(device)


def empty_cache() -> None:
    """Give cached segments that no tensor uses back, on all devices."""
    _C._empty_cache()


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Free and total bytes of the core's HBM."""
    return _C._memory_info(device_index(device))


def set_per_process_memory_fraction(fraction: float, device: Device = None) -> None:
    """Allow this process at most `fraction` of the core's HBM; more is an out-of-memory error."""
    if not isinstance(fraction, float | int) or not 0 < fraction <= 1:
        raise ValueError(f"The memory fraction is {fraction!r}; give a number in (0, 1].")
    _C._set_memory_fraction(device_index(device), float(fraction))


def get_per_process_memory_fraction(device: Device = None) -> float:
    """The share of the core's HBM that this process may reserve."""
    return _C._get_memory_fraction(device_index(device))


def memory_summary(device: Device = None, abbreviated: bool = False) -> str:
    """The counters of `device` as a table to print.

    Args:
        device: which; the current one by default.
        abbreviated: leave out the split by pool.
    """
    index = device_index(device)
    return memory_summary_text(index, memory_stats(index), abbreviated=abbreviated)


def memory_snapshot() -> list[dict[str, Any]]:
    """The segments of all devices with their blocks, as `torch.cuda.memory_snapshot`."""
    segments: list[dict[str, Any]] = _C._memory_snapshot()["segments"]
    return segments


def _record_memory_history(
    enabled: Literal["state", "all"] | bool | None = "all",
    context: Literal["state", "alloc", "all"] | None = "all",
    stacks: Literal["python", "all"] = "python",
    max_entries: int = sys.maxsize,
    device: Device = None,
) -> None:
    """Keep a history of allocations for `_snapshot`; None stops and forgets it.

    Args:
        enabled: None stops; anything else starts.
        context: None leaves out the Python stack of each allocation.
        stacks: Python frames only; "all" is accepted.
        max_entries: the oldest entries beyond this many are dropped.
        device: accepted; the history covers all devices.
    """
    del stacks, device
    if enabled not in ("state", "all", True, False, None):
        raise ValueError(f"enabled is {enabled!r}; give None, 'state' or 'all'.")
    _C._record_memory_history(bool(enabled), max_entries, context is not None)


def _snapshot(device: Device = None) -> dict[str, Any]:
    """The state of the allocator and its history, in the format of PyTorch's memory visualizer."""
    del device
    return {
        **_C._memory_snapshot(),
        "allocator_settings": {"expandable_segments": False},
        "external_annotations": [],
    }


def _dump_snapshot(filename: str = "dump_snapshot.pickle") -> None:
    """Write `_snapshot` to a file that PyTorch's memory visualizer opens."""
    with Path(filename).open("wb") as file:
        pickle.dump(_snapshot(), file)

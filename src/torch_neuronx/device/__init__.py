"""The module `torch.neuron`: what PyTorch programs expect of an accelerator's module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from torch_neuronx import _C
from torch_neuronx.device import amp, memory, random, streams
from torch_neuronx.device.cores import (
    _exchange_device,
    _is_in_bad_fork,
    _lazy_init,
    _maybe_exchange_device,
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    init,
    is_available,
    is_current_stream_capturing,
    is_initialized,
    set_device,
    synchronize,
)
from torch_neuronx.device.driver import driver, platform
from torch_neuronx.device.memory import (
    empty_cache,
    get_per_process_memory_fraction,
    max_memory_active,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_active,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from torch_neuronx.device.properties import (
    NeuronDeviceProperties,
    get_amp_supported_dtype,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    is_bf16_supported,
)
from torch_neuronx.device.random import (
    _get_generator,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from torch_neuronx.device.streams import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)
from torch_neuronx.dry import dry_values

if TYPE_CHECKING:
    from torch_neuronx.clock.measurement import Measurement, measure, modelled_time

OutOfMemoryError = torch.OutOfMemoryError

__all__ = [
    "Event",
    "Measurement",
    "NeuronDeviceProperties",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "_exchange_device",
    "_get_generator",
    "_is_in_bad_fork",
    "_lazy_init",
    "_maybe_exchange_device",
    "amp",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "driver",
    "dry_values",
    "empty_cache",
    "get_amp_supported_dtype",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_active",
    "max_memory_allocated",
    "max_memory_reserved",
    "measure",
    "mem_get_info",
    "memory",
    "memory_active",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "modelled_time",
    "platform",
    "random",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "streams",
    "synchronize",
]


# Loaded on first use: cost rules and prices are of no use to a program that measures nothing.
_OF_THE_CLOCK = ("Measurement", "measure", "modelled_time")


def __getattr__(name: str) -> Any:
    if name in _OF_THE_CLOCK:
        from torch_neuronx.clock import measurement

        return getattr(measurement, name)
    # Made on demand: the devices need not exist when the module is imported.
    if name == "default_generators":
        return tuple(_C._default_generator(index) for index in range(_C._device_count()))
    # torch.utils.checkpoint saves the generator's state only if this is true.
    if name == "_initialized":
        return is_initialized()
    raise AttributeError(f"module 'torch.neuron' has no attribute {name!r}")

"""Facts about Trainium chips, what they cost, and how long work takes on them. stdlib only.

The tables and `Work` are here. `neuron_chip.counts` turns shapes into work, `neuron_chip.cost` work
into time; `neuron_chip.instructions` describes instructions, `neuron_chip.trace` event files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neuron_chip.chips import CHIPS, chip
from neuron_chip.instances import DEFAULT_INSTANCE, INSTANCES, Instance, instance
from neuron_chip.lookup import UnknownNameError
from neuron_chip.parts import Chip

if TYPE_CHECKING:
    from neuron_chip.dtypes import DTYPES, Dtype, dtype
    from neuron_chip.gpus import GPU_INSTANCES, GpuInstance, gpu_instance
    from neuron_chip.prices import PRICES, NoPriceError, Price, price_of, quotations
    from neuron_chip.work import Activity, Lane, Work, total

# A device that only asks for the size of its memory does not load the other tables.
_LATER = {
    **dict.fromkeys(("DTYPES", "Dtype", "dtype"), "dtypes"),
    **dict.fromkeys(("GPU_INSTANCES", "GpuInstance", "gpu_instance"), "gpus"),
    **dict.fromkeys(("PRICES", "NoPriceError", "Price", "price_of", "quotations"), "prices"),
    **dict.fromkeys(("Activity", "Lane", "Work", "total"), "work"),
}


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module 'neuron_chip' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"neuron_chip.{module}"), name)
    globals()[name] = value
    return value


__all__ = [
    "CHIPS",
    "DEFAULT_INSTANCE",
    "DTYPES",
    "GPU_INSTANCES",
    "INSTANCES",
    "PRICES",
    "Activity",
    "Chip",
    "Dtype",
    "GpuInstance",
    "Instance",
    "Lane",
    "NoPriceError",
    "Price",
    "UnknownNameError",
    "Work",
    "chip",
    "dtype",
    "gpu_instance",
    "instance",
    "price_of",
    "quotations",
    "total",
]

"""Trainium as a native PyTorch device: importing this, or just torch, makes "neuron" exist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any


def _autoload() -> None:
    """Register the device; PyTorch calls it at the end of `import torch`.

    Defined before torch is imported: when this package comes first, torch's own import asks for
    it while this module is half done.

    Raises:
        BuildError: the C++ extension is missing or does not fit this PyTorch.
    """
    import importlib

    import torch

    from torch_neuronx.errors import BuildError

    try:
        importlib.import_module("torch_neuronx._C")
    except ImportError as error:
        raise BuildError(
            f"The C++ extension of torch_neuronx cannot be loaded with PyTorch "
            f"{torch.__version__}: {error}. Build it for this PyTorch: `make setup`, or `pip "
            "install --no-build-isolation --force-reinstall --no-deps torch-neuronx`. "
            "TORCH_DEVICE_BACKEND_AUTOLOAD=0 imports torch without it."
        ) from error

    from torch_neuronx import tile_kernel
    from torch_neuronx.registration import register

    register()
    tile_kernel.attach()


_autoload()

from torch_neuronx.device import (  # noqa: E402
    Event,
    Stream,
    current_device,
    current_stream,
    default_stream,
    device_count,
    driver,
    empty_cache,
    get_device_properties,
    is_available,
    set_device,
    stream,
    synchronize,
)
from torch_neuronx.device.cores import _lazy_init  # noqa: E402
from torch_neuronx.device.memory import (  # noqa: E402
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)
from torch_neuronx.errors import BuildError  # noqa: E402
from torch_neuronx.ops.tracking import (  # noqa: E402
    FallbackReport,
    FallbackRow,
    clear_op_tracking,
    fallback_report,
    get_executed_ops,
    get_fallback_ops,
    is_strict,
    strict,
)
from torch_neuronx.tile_kernel import nki_op, wrap_nki  # noqa: E402
from torch_neuronx.version import __version__  # noqa: E402

if TYPE_CHECKING:
    from torch_neuronx.planner import mark_step, plan

__all__ = [
    "BuildError",
    "Event",
    "FallbackReport",
    "FallbackRow",
    "Stream",
    "__version__",
    "_autoload",
    "_lazy_init",
    "clear_op_tracking",
    "current_device",
    "current_stream",
    "default_stream",
    "device_count",
    "driver",
    "empty_cache",
    "fallback_report",
    "get_device_properties",
    "get_executed_ops",
    "get_fallback_ops",
    "is_available",
    "is_strict",
    "mark_step",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "nki_op",
    "plan",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device",
    "stream",
    "strict",
    "synchronize",
    "wrap_nki",
]


def __getattr__(name: str) -> Any:
    # The planner is loaded by who plans.
    if name in ("mark_step", "plan"):
        from torch_neuronx import planner

        return getattr(planner, name)
    raise AttributeError(f"module 'torch_neuronx' has no attribute {name!r}")

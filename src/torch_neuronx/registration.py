"""Makes the device known to PyTorch, once a process. What the device offers is in `device`."""

from __future__ import annotations

import atexit
import sys
from pathlib import Path

import torch
from torch.utils.backend_registration import (
    generate_methods_for_privateuse1_backend,
    rename_privateuse1_backend,
)

from torch_neuronx import _C, device, dry, settings
from torch_neuronx.clock import configured
from torch_neuronx.compiler import default_backend
from torch_neuronx.device import patches, sharing
from torch_neuronx.device.driver import check_available, platform
from torch_neuronx.distributed import backend
from torch_neuronx.ops import tracking

# As long as PyTorch itself waits for its threads.
_BACKWARD_DEADLINE_SECONDS = 10.0

_registered = False


def register() -> None:
    """Name the backend, size the modelled machine, and add torch.neuron and the methods.

    Touches no device memory and starts no thread.
    """
    global _registered
    if _registered:
        return
    _registered = True
    check_available(settings.current().driver)  # before PyTorch knows of us
    rename_privateuse1_backend("neuron")
    torch._register_device_module("neuron", device)
    for name in ("amp", "memory", "random", "streams"):
        # `import torch.neuron.memory` must give the same module, not a second copy.
        sys.modules[f"torch.neuron.{name}"] = getattr(device, name)
    generate_methods_for_privateuse1_backend(
        for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
    )
    patches.apply()
    sharing.install()
    default_backend.install()
    backend.register()
    atexit.register(_finish_work)
    _C._set_library_folders([f"{Path(torch.__file__).parent}/", f"{Path(__file__).parent}/"])
    dry.install()
    model_machine()


def model_machine(*, hbm_bytes_per_core: int | None = None) -> None:
    """Set up driver and machine as the settings say; again only while no device was used.

    Args:
        hbm_bytes_per_core: instead of the chip's own.
    """
    chosen = settings.current()
    driver = check_available(chosen.driver)
    machine = platform()
    hbm_bytes = hbm_bytes_per_core or machine.hbm_bytes_per_core
    _C._configure(
        driver,
        [(machine.chip.name, hbm_bytes)] * len(machine.cores),
        chosen.launch_blocking,
        chosen.wait_deadline_seconds,
        chosen.allocator.max_split_size_bytes,
        chosen.allocator.memory_fraction,
    )
    tracking.load_rows(machine.chip)
    configured.configure(machine.instance, machine.lnc)
    if driver == "dry":
        _C._observer_start()
    tracking.set_strict(chosen.strict)


def _finish_work() -> None:
    """Let work end before the interpreter goes: closures and threads may hold Python objects."""
    if _C._is_used() and not _C._is_in_bad_fork():
        _C._finish_backward_threads(_BACKWARD_DEADLINE_SECONDS)
        failed: list[RuntimeError] = []
        for index in range(_C._device_count()):
            try:
                _C._synchronize(index)
            except RuntimeError as error:
                failed.append(error)  # the other devices have work to end, too
        if failed:
            raise failed[0]

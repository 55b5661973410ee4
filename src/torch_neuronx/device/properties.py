"""What a device is: the facts of `neuron_chip` in the form that PyTorch programs ask for."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from torch_neuronx import _C
from torch_neuronx.device.cores import Device, device_index
from torch_neuronx.device.driver import driver, platform
from torch_neuronx.errors import WrongDeviceError


@dataclass(frozen=True, kw_only=True)
class NeuronDeviceProperties:
    """One logical core."""

    name: str
    """The chip: "trn2", "trn3"."""
    index: int
    core: int
    """Number of the logical core on its host; differs from `index` when few are visible."""
    core_name: str
    instance_type: str
    driver: str
    total_memory: int
    """HBM bytes."""
    logical_nc_config: int
    """Physical cores per logical core."""
    multi_processor_count: int
    """The same under CUDA's name: engines sets that run side by side."""
    major: int
    """Generation of the core."""
    minor: int
    sbuf_bytes: int
    """Of each physical core."""
    psum_bytes: int


def get_device_properties(device: Device = None) -> NeuronDeviceProperties:
    """The properties of `device`, by default of the current one."""
    index = _checked(device)
    machine = platform()
    chip = machine.chip
    return NeuronDeviceProperties(
        name=chip.name,
        index=index,
        core=machine.cores[index],
        core_name=chip.core_name,
        instance_type=machine.instance.name,
        driver=driver(),
        total_memory=machine.hbm_bytes_per_core,
        logical_nc_config=machine.lnc,
        multi_processor_count=machine.lnc,
        major=chip.generation,
        minor=0,
        sbuf_bytes=chip.sbuf.total_bytes,
        psum_bytes=chip.psum.total_bytes,
    )


def get_device_name(device: Device = None) -> str:
    """For example "neuron trn2 (NeuronCore-v3, LNC 2)"."""
    _checked(device)
    machine = platform()
    return f"neuron {machine.chip.name} ({machine.chip.core_name}, LNC {machine.lnc})"


def get_device_capability(device: Device = None) -> tuple[int, int]:
    """Generation of the core and 0: (3, 0) for NeuronCore-v3."""
    _checked(device)
    return platform().chip.generation, 0


def get_arch_list() -> list[str]:
    """The chips that code runs for here: the modelled one."""
    return [platform().chip.name]


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """True: bfloat16 is the chip's main dtype."""
    del including_emulation
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Dtypes that `torch.autocast("neuron")` may cast to, the default first."""
    return [torch.bfloat16, torch.float16]


def _checked(device: Device) -> int:
    index = device_index(device)
    if not 0 <= index < _C._device_count():
        raise WrongDeviceError(
            f"There is no neuron:{index}; this process has {_C._device_count()} devices "
            f"({platform().instance.name}). NEURON_INSTANCE_TYPE and NEURON_RT_VISIBLE_CORES "
            "decide how many."
        )
    return index

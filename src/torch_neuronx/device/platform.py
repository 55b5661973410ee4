"""The modelled machine of this process: which chip, which cores, how much memory each."""

from __future__ import annotations

from dataclasses import dataclass

import neuron_chip
from neuron_chip import Chip, Instance, UnknownNameError
from torch_neuronx.errors import SettingError
from torch_neuronx.settings import Settings

# c10::DeviceIndex has 8 bits, and -1 means "the current one".
MAX_DEVICES = 127


@dataclass(frozen=True, kw_only=True)
class Platform:
    """The logical cores that a process may use."""

    instance: Instance
    chip: Chip
    lnc: int
    """Physical cores per logical core."""
    cores: tuple[int, ...]
    """Logical cores of the host; `neuron:0` is the first entry."""

    @property
    def hbm_bytes_per_core(self) -> int:
        """HBM of each logical core."""
        return self.chip.hbm_bytes_per_logical_core(lnc=self.lnc)


def resolve(settings: Settings) -> Platform:
    """The platform that `settings` describe.

    Raises:
        SettingError: they name something that does not exist, or contradict each other.
    """
    instance, num_chips = _machine(settings)
    lnc = _logical_core_size(settings, instance.chip)
    num_cores = num_chips * instance.chip.logical_cores(lnc=lnc)
    return Platform(
        instance=instance,
        chip=instance.chip,
        lnc=lnc,
        cores=_visible(settings, num_cores, instance),
    )


def _machine(settings: Settings) -> tuple[Instance, int]:
    """The instance, and how many of its chips the host of this process has."""
    wanted = None
    if settings.platform_target is not None:
        try:
            wanted = neuron_chip.chip(settings.platform_target)
        except UnknownNameError as error:
            raise SettingError(
                f"NEURON_PLATFORM_TARGET_OVERRIDE={settings.platform_target}: {error}"
            ) from None
    if settings.instance_type is None:
        if wanted is None or wanted == neuron_chip.instance().chip:
            instance = neuron_chip.instance()
            return instance, instance.num_chips
        return min(
            (row for row in neuron_chip.INSTANCES if row.chip == wanted),
            key=lambda row: row.num_chips,
        ), 1
    try:
        instance = neuron_chip.instance(settings.instance_type)
    except UnknownNameError as error:
        raise SettingError(f"NEURON_INSTANCE_TYPE={settings.instance_type}: {error}") from None
    if wanted is not None and wanted != instance.chip:
        raise SettingError(
            f"NEURON_PLATFORM_TARGET_OVERRIDE={settings.platform_target} asks for {wanted.name}, "
            f"but {instance.name} has {instance.chip.name}. Unset one of "
            "NEURON_PLATFORM_TARGET_OVERRIDE and NEURON_INSTANCE_TYPE."
        )
    return instance, instance.num_chips // instance.num_hosts


def _logical_core_size(settings: Settings, chip: Chip) -> int:
    sizes = {settings.logical_nc_config, settings.virtual_core_size} - {None}
    if len(sizes) > 1:
        raise SettingError(
            f"NEURON_LOGICAL_NC_CONFIG={settings.logical_nc_config} and "
            f"NEURON_RT_VIRTUAL_CORE_SIZE={settings.virtual_core_size} contradict each other. "
            "They mean the same; set one."
        )
    try:
        return chip.check_lnc(sizes.pop() if sizes else None)
    except ValueError as error:
        raise SettingError(str(error)) from None


def _visible(settings: Settings, num_cores: int, instance: Instance) -> tuple[int, ...]:
    if settings.visible_cores is not None:
        beyond = [core for core in settings.visible_cores if core >= num_cores]
        if beyond:
            raise SettingError(
                f"NEURON_RT_VISIBLE_CORES names core {beyond[0]}, but {instance.name} has "
                f"{num_cores} logical cores here, 0 to {num_cores - 1}. Name one of these, or "
                "a larger NEURON_INSTANCE_TYPE."
            )
        cores = settings.visible_cores
    else:
        count = settings.num_cores or num_cores
        if count > num_cores:
            raise SettingError(
                f"NEURON_RT_NUM_CORES={count}, but {instance.name} has {num_cores} logical cores "
                "here. Ask for at most that many, or for a larger NEURON_INSTANCE_TYPE."
            )
        cores = tuple(range(count))
    if len(cores) > MAX_DEVICES:
        raise SettingError(
            f"{instance.name} has {len(cores)} logical cores, but PyTorch counts at most "
            f"{MAX_DEVICES} devices in a process. Set NEURON_RT_NUM_CORES or "
            "NEURON_RT_VISIBLE_CORES to fewer."
        )
    return cores

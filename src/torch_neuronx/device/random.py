"""Random numbers: seeds and states of the devices' default generators (Philox)."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from torch_neuronx import _C
from torch_neuronx.device.cores import Device, device_count, device_index


def default_generator(device: Device = None) -> torch.Generator:
    """The generator that operators on `device` use when they are given none."""
    return _C._default_generator(device_index(device))


def _get_generator(device: torch.device) -> torch.Generator:
    """The name by which AOTAutograd asks for it."""
    return default_generator(device)


def get_rng_state(device: Device = "neuron") -> torch.Tensor:
    """The state of a default generator: 16 bytes on the CPU, seed then offset."""
    return default_generator(device).get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all devices."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state(new_state: torch.Tensor, device: Device = "neuron") -> None:
    """Put a state back that `get_rng_state` gave."""
    default_generator(device).set_state(new_state)


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Put the states of all devices back."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def manual_seed(seed: int) -> None:
    """Seed the current device."""
    default_generator().manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed all devices. `torch.manual_seed` does it too."""
    for index in range(device_count()):
        default_generator(index).manual_seed(int(seed))


def seed() -> None:
    """Seed the current device with a random number."""
    default_generator().seed()


def seed_all() -> None:
    """Seed all devices with one random number."""
    seed()
    manual_seed_all(initial_seed())


def initial_seed() -> int:
    """The seed of the current device."""
    return int(default_generator().initial_seed())

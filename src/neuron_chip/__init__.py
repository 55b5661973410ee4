"""Facts about Trainium chips, what they cost, and how long work takes on them. stdlib only."""

from __future__ import annotations

from neuron_chip.chips import CHIPS, Chip, chip
from neuron_chip.instances import DEFAULT_INSTANCE, INSTANCES, Instance, instance
from neuron_chip.lookup import UnknownNameError

__all__ = [
    "CHIPS",
    "DEFAULT_INSTANCE",
    "INSTANCES",
    "Chip",
    "Instance",
    "UnknownNameError",
    "chip",
    "instance",
]

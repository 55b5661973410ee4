"""Which chip the kernel is specialised for."""

from __future__ import annotations

from nki.program.builder import current_or_none
from nki.program.enums import nc_version
from nki.settings import target_chip


def get_nc_version() -> nc_version:
    """Generation of the target's NeuronCore."""
    builder = current_or_none()
    chip = builder.chip if builder is not None else target_chip()
    return nc_version(chip.generation)


def get_nc_sub_version() -> int:
    """Silicon revision of the target: 0 is the first."""
    return 0

"""DMA engines and HBM: descriptors, bandwidth, latency, transposes. No compute here."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neuron_chip.parts import Chip


def descriptor_seconds(chip: Chip, num_bytes: float) -> float:
    """Time of one descriptor in its engine."""
    dma = chip.dma
    return dma.descriptor_ns * 1e-9 + num_bytes / dma.peak_bytes_per_second_per_engine


def dma_seconds(
    chip: Chip,
    *,
    num_bytes: float,
    descriptors: float,
    software_descriptors: float = 0.0,
    transpose_bytes: float = 0.0,
    cores: int = 1,
) -> float:
    """Busy time of the DMA engines of `cores` physical cores, all queues filled.

    Descriptors that the caller does not know are as long as the engines like them.
    """
    dma = chip.dma
    full_rate = num_bytes / dma.full_rate_descriptor_bytes
    # Longer pieces are cut into packets of the full-rate size.
    pieces = max(descriptors, full_rate)
    engines = dma.engines * cores
    busy = (
        pieces * dma.descriptor_ns * 1e-9 + num_bytes / dma.peak_bytes_per_second_per_engine
    ) / engines
    if transpose_bytes and dma.transpose_hbm_efficiency is not None:
        busy += (
            (1 / dma.transpose_hbm_efficiency - 1)
            * transpose_bytes
            / (dma.bytes_per_second * cores)
        )
    # GpSimd writes the descriptors of indirect transfers one after the other.
    written = software_descriptors * dma.software_descriptor_ns * 1e-9 / cores
    return max(busy, written)


def transfer_seconds(
    chip: Chip, *, num_bytes: float, descriptor_bytes: float, partitions: int = 128
) -> float:
    """Duration of one lone transfer from first byte to last, the trigger not counted."""
    dma = chip.dma
    descriptors = num_bytes / max(1.0, descriptor_bytes)
    engines = min(dma.engines, partitions, max(1.0, descriptors))
    piece = min(descriptor_bytes, dma.full_rate_descriptor_bytes)
    pieces = num_bytes / max(1.0, piece)
    busy = pieces / engines * descriptor_seconds(chip, piece)
    return max(dma.transfer_latency_ns * 1e-9, busy)


def round_trip_seconds(chip: Chip, *, dynamic: bool = False) -> float:
    """From the trigger to the waiting engine, with no bytes in between."""
    dma = chip.dma
    trigger = dma.trigger_dynamic_ns if dynamic else dma.trigger_static_ns
    return (trigger + dma.completion_ns) * 1e-9


def hbm_seconds(chip: Chip, *, num_bytes: float, lnc: int | None = None) -> float:
    """Time of HBM traffic of one logical core at the rate a copy reaches."""
    rate = chip.hbm_bytes_per_second_per_logical_core(lnc=lnc) * chip.hbm.efficiency
    return num_bytes / rate

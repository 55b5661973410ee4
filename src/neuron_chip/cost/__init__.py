"""Prices: pure functions from counted work and a chip to time. No clock, no state, no device."""

from __future__ import annotations

from neuron_chip.cost.dma import (
    descriptor_seconds,
    dma_seconds,
    hbm_seconds,
    round_trip_seconds,
    transfer_seconds,
)
from neuron_chip.cost.efficiency import mbu, mfu
from neuron_chip.cost.lanes import lane_engine, lane_seconds
from neuron_chip.cost.price import (
    NO_TIME,
    Time,
    collective_seconds,
    engine_floors,
    price,
    price_all,
)
from neuron_chip.cost.tensor import (
    UnsupportedOnChipError,
    matmul_passes,
    matmul_utilization,
    tensor_cycles,
    warm_up_seconds,
)

__all__ = [
    "NO_TIME",
    "Time",
    "UnsupportedOnChipError",
    "collective_seconds",
    "descriptor_seconds",
    "dma_seconds",
    "engine_floors",
    "hbm_seconds",
    "lane_engine",
    "lane_seconds",
    "matmul_passes",
    "matmul_utilization",
    "mbu",
    "mfu",
    "price",
    "price_all",
    "round_trip_seconds",
    "tensor_cycles",
    "transfer_seconds",
    "warm_up_seconds",
]

"""Time of a collective from its operation, size and group. No communication happens here.

A collective is a start-up (exchanges between ranks that wait for each other) plus a transfer
(bytes over the narrowest channel). Inside a chip and over NeuronLink ranks form a mesh for small
messages and rings for large ones; between hosts the network adds a phase of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from neuron_chip.lookup import find

if TYPE_CHECKING:
    from neuron_chip.instances import Instance
    from neuron_chip.parts import Chip

# The runtime's choice by message size: mesh, then recursive doubling/halving, then rings.
# Source: the collectives pages of the AWS Neuron documentation.
MESH_LIMIT_BYTES = 1_000_000
HALVING_LIMIT_BYTES = 56_000_000

# One mutual exchange of a mesh, microseconds; an all-reduce is two. Source: a 2-rank all-reduce
# inside a graph adds 26 us and one over the four cores of a chip ~45 us (github.com/foxl-ai/kiln);
# nccom-test shows 101 us for a small bf16 all-reduce over 64 ranks (AWS documentation).
PAIR_EXCHANGE_US = 13.0
CHIP_EXCHANGE_US = 22.5
LINK_EXCHANGE_US = 50.0
# RDMA write from HBM to HBM over EFA. Source: AWS Neuron documentation, collectives.
EFA_HOP_US = 15.0
# The logical cores of a chip reached 107 to 125 GB/s of bus rate, of 128
# (github.com/whn09/xpu-perf).
CHANNEL_EFFICIENCY = 0.9
# All-to-all: 360 us however small, 48 of them the launch, and half of the rings' rate at best
# (github.com/whn09/xpu-perf).
ALL_TO_ALL_FLOOR_US = 310.0
ALL_TO_ALL_EFFICIENCY = 0.45


@dataclass(frozen=True, kw_only=True)
class Group:
    """The ranks of a collective and where they sit."""

    ranks: int
    ranks_per_chip: int
    ranks_per_domain: int
    """Ranks that NeuronLink joins; more ranks than these talk over the network."""
    network_bytes_per_second_per_rank: float | None = None

    def __post_init__(self) -> None:
        if self.ranks < 1:
            raise ValueError(f"A group has {self.ranks} ranks; it needs at least 1.")
        assert 1 <= self.ranks_per_chip <= self.ranks_per_domain <= self.ranks
        assert self.domains == 1 or self.network_bytes_per_second_per_rank

    @property
    def domains(self) -> int:
        """NeuronLink domains that the group spans."""
        return math.ceil(self.ranks / self.ranks_per_domain)


def group(instance: Instance, ranks: int, *, stride: int = 1, lnc: int | None = None) -> Group:
    """The group of `ranks` logical cores that are `stride` apart, packed from core 0 on.

    More ranks than the instance has logical cores continue on further instances of its kind.
    """
    if ranks < 1 or stride < 1:
        raise ValueError(f"A group of {ranks} ranks with stride {stride}: both must be >= 1.")
    per_chip = max(1, instance.chip.logical_cores(lnc=lnc) // stride)
    cores = instance.logical_cores(lnc=lnc)
    per_domain = max(1, cores // stride)
    return Group(
        ranks=ranks,
        ranks_per_chip=min(per_chip, ranks),
        ranks_per_domain=min(per_domain, ranks),
        network_bytes_per_second_per_rank=instance.network_bytes_per_second / cores,
    )


@dataclass(frozen=True, kw_only=True)
class Collective:
    """One call: `num_bytes` is the whole buffer (all-gather: the output, all others: the input)."""

    op: str
    num_bytes: float
    group: Group

    def __post_init__(self) -> None:
        find(_EXCHANGES, self.op, kind="collective")


@dataclass(frozen=True, kw_only=True)
class CollectiveTime:
    """What one call costs, and how."""

    algorithm: str
    start_up_us: float
    transfer_us: float

    @property
    def total_us(self) -> float:
        """Device time of the call, without the launch."""
        return self.start_up_us + self.transfer_us


# Mutual exchanges of a mesh, and passes of the buffer over each rank's channel.
_EXCHANGES: dict[str, int] = {
    "all_reduce": 2,
    "all_gather": 1,
    "reduce_scatter": 1,
    "all_to_all": 1,
    "broadcast": 1,
    "reduce": 1,
    "gather": 1,
    "scatter": 1,
    "permute": 1,
    "send_recv": 1,
    "barrier": 2,
}


def bus_factor(op: str, ranks: int) -> float:
    """Bytes over a rank's channel per byte of the buffer."""
    if ranks == 1:
        return 0.0
    if op in ("permute", "send_recv", "broadcast", "reduce"):
        return 1.0
    if op == "barrier":
        return 0.0
    share = (ranks - 1) / ranks
    return 2 * share if op == "all_reduce" else share


def collective_time(call: Collective, chip: Chip) -> CollectiveTime:
    """Price one call on ranks that sit on chips of this kind."""
    members = call.group
    if members.ranks == 1:
        return CollectiveTime(algorithm="none", start_up_us=0.0, transfer_us=0.0)
    if members.domains == 1:
        return _within_domain(call.op, call.num_bytes, members.ranks, members.ranks_per_chip, chip)
    return _across_domains(call, chip)


def _within_domain(
    op: str, num_bytes: float, ranks: int, ranks_per_chip: int, chip: Chip
) -> CollectiveTime:
    """Ranks joined by a chip or by NeuronLink: a phase inside chips, one between them."""
    chips = math.ceil(ranks / ranks_per_chip)
    inside = chip.link.bytes_per_second_in_chip * CHANNEL_EFFICIENCY
    between = chip.link.bytes_per_second_per_channel * CHANNEL_EFFICIENCY
    exchange_us = LINK_EXCHANGE_US
    if chips == 1:
        exchange_us = PAIR_EXCHANGE_US if ranks == 2 else CHIP_EXCHANGE_US
    start_up_us = _EXCHANGES[op] * exchange_us
    # Each core of a chip carries its share of the buffer over links of its own.
    seconds = bus_factor(op, ranks_per_chip) * num_bytes / inside
    if chips > 1:
        seconds += bus_factor(op, chips) * num_bytes / ranks_per_chip / between
    if op == "all_to_all":
        start_up_us = max(start_up_us, ALL_TO_ALL_FLOOR_US)
        seconds *= CHANNEL_EFFICIENCY / ALL_TO_ALL_EFFICIENCY
    algorithm = "mesh"
    if num_bytes >= HALVING_LIMIT_BYTES:
        algorithm = "ring"
        start_up_us += _EXCHANGES[op] * (ranks - 2) * chip.link.hop_us
    elif num_bytes >= MESH_LIMIT_BYTES:
        algorithm = "halving"
        start_up_us += _EXCHANGES[op] * (math.log2(ranks) - 1) * chip.link.hop_us
    return CollectiveTime(algorithm=algorithm, start_up_us=start_up_us, transfer_us=1e6 * seconds)


def _across_domains(call: Collective, chip: Chip) -> CollectiveTime:
    """A phase inside each domain, then one between the domains on each rank's share."""
    members = call.group
    inside = _within_domain(
        call.op, call.num_bytes, members.ranks_per_domain, members.ranks_per_chip, chip
    )
    if members.ranks_per_domain == 1:
        inside = CollectiveTime(algorithm="none", start_up_us=0.0, transfer_us=0.0)
    network = members.network_bytes_per_second_per_rank
    assert network is not None
    share = call.num_bytes / members.ranks_per_domain
    exchanges = _EXCHANGES[call.op]
    mesh_us = exchanges * EFA_HOP_US
    ring_us = exchanges * EFA_HOP_US * (members.domains - 1)
    # A mesh sends every piece at once and pays one hop; rings pay all hops for full links.
    hops_us = mesh_us if share < MESH_LIMIT_BYTES else ring_us
    return CollectiveTime(
        algorithm=f"{inside.algorithm}+network",
        start_up_us=inside.start_up_us + hops_us,
        transfer_us=inside.transfer_us
        + 1e6 * bus_factor(call.op, members.domains) * share / network,
    )

"""Instances that carry Trainium or Inferentia chips, one row each. Prices are in `prices`."""

from __future__ import annotations

from dataclasses import dataclass

from neuron_chip import sources
from neuron_chip.chips import INF2, TRN1, TRN2, TRN3
from neuron_chip.lookup import find
from neuron_chip.parts import GIB, Chip


@dataclass(frozen=True, kw_only=True)
class Instance:
    """One rentable machine, or an UltraServer that joins several of them."""

    name: str
    chip: Chip
    num_chips: int
    num_hosts: int = 1
    """Machines with an operating system of their own."""
    vcpus: int
    host_memory_bytes: int
    network_bytes_per_second: float
    """All network interfaces together, one direction."""
    local_disk_bytes: int | None
    rentable: bool
    """Whether the public EC2 API lists the type."""
    source: str

    def __post_init__(self) -> None:
        sources.check(self.source)
        assert self.num_chips % self.num_hosts == 0

    def logical_cores(self, *, lnc: int | None = None) -> int:
        """Logical NeuronCores of the whole instance."""
        return self.num_chips * self.chip.logical_cores(lnc=lnc)

    def hbm_bytes_per_logical_core(self, *, lnc: int | None = None) -> int:
        """HBM that one logical core may fill."""
        return self.chip.hbm_bytes_per_logical_core(lnc=lnc)

    @property
    def hbm_bytes(self) -> int:
        """HBM of all chips."""
        return self.num_chips * self.chip.hbm.total_bytes

    @property
    def hbm_bytes_per_second(self) -> float:
        """Nominal HBM rate of all chips."""
        return self.num_chips * self.chip.hbm.bytes_per_second

    @property
    def num_cores(self) -> int:
        """Physical NeuronCores."""
        return self.num_chips * self.chip.num_cores

    def peak_flops_per_second(self) -> float:
        """bf16 peak of all chips at the real clock."""
        return self.num_cores * self.chip.tensor.dense_flops_per_second


def _row(
    name: str,
    chip: Chip,
    num_chips: int,
    *,
    vcpus: int,
    host_gib: int,
    network_gbps: float,
    disk_gb: int | None,
    num_hosts: int = 1,
    rentable: bool = True,
    source: str = "ec2",
) -> Instance:
    return Instance(
        name=name,
        chip=chip,
        num_chips=num_chips,
        num_hosts=num_hosts,
        vcpus=vcpus,
        host_memory_bytes=host_gib * GIB,
        network_bytes_per_second=network_gbps * 1e9 / 8,
        local_disk_bytes=None if disk_gb is None else disk_gb * 10**9,
        rentable=rentable,
        source=source,
    )


INSTANCES: tuple[Instance, ...] = (
    _row("trn1.2xlarge", TRN1, 1, vcpus=8, host_gib=32, network_gbps=12.5, disk_gb=None),
    _row("trn1.32xlarge", TRN1, 16, vcpus=128, host_gib=512, network_gbps=800, disk_gb=7600),
    _row("trn1n.32xlarge", TRN1, 16, vcpus=128, host_gib=512, network_gbps=1600, disk_gb=7600),
    _row("inf2.xlarge", INF2, 1, vcpus=4, host_gib=16, network_gbps=15, disk_gb=None),
    _row("inf2.8xlarge", INF2, 1, vcpus=32, host_gib=128, network_gbps=25, disk_gb=None),
    _row("inf2.24xlarge", INF2, 6, vcpus=96, host_gib=384, network_gbps=50, disk_gb=None),
    _row("inf2.48xlarge", INF2, 12, vcpus=192, host_gib=768, network_gbps=100, disk_gb=None),
    _row("trn2.3xlarge", TRN2, 1, vcpus=12, host_gib=128, network_gbps=200, disk_gb=470),
    _row("trn2.48xlarge", TRN2, 16, vcpus=192, host_gib=2048, network_gbps=3200, disk_gb=7680),
    _row("trn2u.48xlarge", TRN2, 16, vcpus=192, host_gib=2048, network_gbps=3200, disk_gb=7680),
    _row(
        "trn2-ultraserver",
        TRN2,
        64,
        num_hosts=4,
        vcpus=768,
        host_gib=8192,
        network_gbps=4 * 3200,
        disk_gb=4 * 7680,
        source="hw ec2",
    ),
    _row(
        "trn3-ultraserver-gen1",
        TRN3,
        64,
        num_hosts=4,
        vcpus=768,
        host_gib=8192,
        network_gbps=12800,
        disk_gb=None,
        rentable=False,
        source="hw",
    ),
    _row(
        "trn3-ultraserver-gen2",
        TRN3,
        144,
        num_hosts=36,
        vcpus=2304,
        host_gib=27648,
        network_gbps=28800,
        disk_gb=None,
        rentable=False,
        source="hw",
    ),
)

DEFAULT_INSTANCE = "trn2.3xlarge"

_BY_NAME: dict[str, Instance] = {row.name: row for row in INSTANCES}


def instance(name: str = DEFAULT_INSTANCE) -> Instance:
    """The instance called `name`, for example "trn2.48xlarge" or "trn3-ultraserver-gen2"."""
    return find(_BY_NAME, name, kind="instance")

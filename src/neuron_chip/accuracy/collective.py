"""Published collectives: eager on one trn2 chip, across an instance, and the nccom-test samples."""

from __future__ import annotations

from neuron_chip.accuracy.measurement import Measurement, launched, microseconds
from neuron_chip.chips import TRN1, TRN2
from neuron_chip.collectives import Collective, Group, bus_factor, group
from neuron_chip.instances import instance
from neuron_chip.parts import Chip
from neuron_chip.work import Work

KIB, MB = 1024.0, 1e6
_SMALL, _LARGE = instance("trn2.3xlarge"), instance("trn2.48xlarge")


def _call(
    op: str,
    num_bytes: float,
    members: Group,
    us: float,
    *,
    label: str,
    software: str = "eager",
    source: str = "xpu-perf-qwen",
    chip: Chip = TRN2,
    guide: bool = False,
) -> Measurement:
    work = Work(collectives={Collective(op=op, num_bytes=num_bytes, group=members): 1.0})
    return Measurement(
        name=f"{op} {label}",
        group="collective",
        seconds=microseconds(us),
        source=source,
        work=launched(work),
        chip=chip,
        software=software,
        guide=guide,
    )


def _chip_all_reduce(
    label: str, num_bytes: float, us: float, *, guide: bool = False
) -> Measurement:
    return _call(
        "all_reduce", num_bytes, group(_SMALL, 4), us, label=f"{label}, 4 ranks", guide=guide
    )


def _best_rate(op: str, ranks: int, gigabytes_per_second: float) -> Measurement:
    """The best bus rate over sizes, priced at 100 MB."""
    num_bytes = 100 * MB
    us = 1e-3 * bus_factor(op, ranks) * num_bytes / gigabytes_per_second
    return _call(
        op,
        num_bytes,
        group(_SMALL, ranks),
        us,
        label=f"{ranks} ranks, {gigabytes_per_second:g} GB/s bus",
        source="xpu-perf",
    )


def _two_trn1(label: str, num_bytes: float, us: float) -> Measurement:
    return _call(
        "all_reduce",
        num_bytes,
        group(instance("trn1.32xlarge"), 64),
        us,
        label=f"{label}, 64 ranks on 2 trn1.32xlarge",
        software="device",
        source="collectives",
        chip=TRN1,
    )


MEASUREMENTS: tuple[Measurement, ...] = (
    _chip_all_reduce("10 KiB", 10 * KIB, 105.1),
    _chip_all_reduce("160 KiB", 160 * KIB, 118.1),
    _chip_all_reduce("640 KiB", 640 * KIB, 113.7),
    _chip_all_reduce("10 MB", 10 * MB, 199.6),
    _chip_all_reduce("40 MB", 40 * MB, 654.8),
    _chip_all_reduce("100 MB", 100 * MB, 1476.1, guide=True),
    _call(
        "all_reduce", 2048 * KIB, group(_SMALL, 2), 105.3, label="2 MiB, 2 ranks", source="xpu-perf"
    ),
    _call(
        "all_gather", 2048 * KIB, group(_SMALL, 2), 91.1, label="2 MiB, 2 ranks", source="xpu-perf"
    ),
    _best_rate("all_gather", 2, 64.5),
    _best_rate("all_gather", 4, 125.1),
    _best_rate("all_reduce", 2, 37.8),
    _best_rate("all_reduce", 4, 107.1),
    _best_rate("reduce_scatter", 2, 91.8),
    _best_rate("reduce_scatter", 4, 101.7),
    _best_rate("all_to_all", 4, 54.2),
    _call(
        "all_reduce",
        4 * KIB,
        group(_LARGE, 32),
        230,
        label="4 KiB, 32 ranks",
        source="torchneuron-users",
    ),
    _call(
        "all_reduce",
        KIB,
        group(_LARGE, 64),
        101,
        label="1 KiB, 64 ranks",
        software="device",
        source="collectives",
        guide=True,
    ),
    _call(
        "all_reduce",
        1024 * KIB,
        group(_LARGE, 64),
        118,
        label="1 MiB, 64 ranks",
        software="device",
        source="collectives",
    ),
    _two_trn1("8 B", 8, 520),
    _two_trn1("1 MB", MB, 1328),
    _two_trn1("16 MB", 16 * MB, 2138),
    _two_trn1("128 MB", 128 * MB, 6279),
    _two_trn1("1 GB", 1000 * MB, 41806),
)

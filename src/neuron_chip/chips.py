"""Chips, one row each: the only place with hardware numbers. The records are in `parts`."""

from __future__ import annotations

from dataclasses import replace

from neuron_chip.lookup import find
from neuron_chip.parts import (
    GIB,
    KIB,
    MIB,
    Chip,
    Dma,
    Hbm,
    LaneEngine,
    Link,
    ScratchMemory,
    TensorEngine,
    Throttle,
)


def _psum(source: str) -> ScratchMemory:
    return ScratchMemory(
        name="psum",
        partitions=128,
        bytes_per_partition=16 * KIB,
        total_bytes=2 * MIB,
        bank_bytes_per_partition=2 * KIB,
        source=source,
    )


def _sbuf(mib: int, source: str) -> ScratchMemory:
    return ScratchMemory(
        name="sbuf",
        partitions=128,
        bytes_per_partition=mib * MIB // 128,
        total_bytes=mib * MIB,
        bank_bytes_per_partition=None,
        source=source,
    )


# The tutorial's profile shows 428.5 ns between issues and 590 ns per instruction, hence ~160 ns
# of pipeline; 400 ns for 128 elements on ScalarE and 685 ns for 512 on VectorE give the fixed
# parts. The clocks of the three cores differ little, so one set of nanoseconds serves all.
_PIPELINE_NS = 160.0
# 859 ns per pair of fp32 passes over 512 columns are 2,062 cycles; the columns alone are 2,048.
_ISSUE_GAP_CYCLES = 14
# Collectives over the four logical cores of trn2 come to 107-125 GB/s of bus rate; no figure of
# the other chips is public.
_IN_CHIP_BYTES_PER_SECOND = 128e9
# Copies between host and trn2 ran at 14 GB/s, and at 4.2 GB/s for each of four logical cores; no
# figure of the other chips is public.
_HOST_BYTES_PER_SECOND = 14e9
_HOST_BYTES_PER_SECOND_OF_CHIP = 4 * 4.2e9
# A device-to-device copy reached 648.7 GB/s of the 716.8 GB/s of one trn2 logical core.
_HBM_EFFICIENCY = 0.90
_VECTOR_FIXED_NS = 150.0
_SCALAR_FIXED_NS = 290.0

TRN1 = Chip(
    name="trn1",
    product="AWS Trainium",
    aliases=("trainium", "trainium1", "gen2", "trn1n"),
    generation=2,
    core_name="NeuronCore-v2",
    num_cores=2,
    default_lnc=1,
    allowed_lnc=(1,),
    tensor=TensorEngine(
        clock_ghz=2.8,
        rows=128,
        columns=128,
        max_moving_free=512,
        fp32_passes=4,
        fp8_rows=128,
        mx_rows=None,
        min_issue_cycles=64,
        issue_gap_cycles=_ISSUE_GAP_CYCLES,
        pipeline_latency_ns=_PIPELINE_NS,
        stationary_load_speedup=4,
        source="nki-v2 perf-guide matmul-tutorial",
    ),
    vector=LaneEngine(
        name="vector",
        clock_ghz=1.12,
        lanes=128,
        max_fast_elements_per_lane_cycle=1,
        min_issue_cycles=64,
        fixed_ns=200.0,
        source="nki-v2 isa-cost kiln",
    ),
    scalar=LaneEngine(
        name="scalar",
        clock_ghz=1.4,
        lanes=128,
        max_fast_elements_per_lane_cycle=1,
        min_issue_cycles=64,
        fixed_ns=189.0,  # back-to-back dependent small instructions
        source="nki-v2 isa-cost perf-guide",
    ),
    gpsimd=LaneEngine(
        name="gpsimd",
        clock_ghz=1.4,
        lanes=128,
        max_fast_elements_per_lane_cycle=1,
        min_issue_cycles=64,
        fixed_ns=107.0,  # 150 cycles of start-up
        source="nki-v2 isa-cost",
    ),
    activation_table_load_ns=1325.0,
    dynamic_offset_cycles=600,
    sbuf=_sbuf(24, "nki-v2"),
    psum=_psum("nki-v2"),
    hbm=Hbm(
        total_bytes=32 * GIB,
        stacks=2,
        bytes_per_second=820e9,
        efficiency=_HBM_EFFICIENCY,
        source="hw xpu-perf inference",  # shares as measured on trn2
    ),
    dma=Dma(
        engines=16,
        queues_per_engine=16,
        peak_bytes_per_second_per_engine=27.2e9,
        bytes_per_second_per_engine=17e9,
        full_rate_descriptor_bytes=4096,
        transfer_latency_ns=860.0,
        trigger_static_ns=1000.0,
        trigger_dynamic_ns=700.0,
        completion_ns=300.0,
        hardware_dge_ns=None,
        software_descriptor_ns=35.0,
        transpose_hbm_efficiency=None,
        transpose_sbuf_efficiency=None,
        source="nki-v2 dma-guide kiln",
    ),
    collective_cores=6,
    link=Link(
        name="NeuronLink-v2",
        topology="torus",
        bytes_per_second_per_chip=384e9,
        bytes_per_second_per_channel=48e9,  # 4 neighbours, 2 directions
        bytes_per_second_in_chip=_IN_CHIP_BYTES_PER_SECOND,
        hop_us=1.5,
        source="hw collectives",
    ),
    host_bytes_per_second=_HOST_BYTES_PER_SECOND,
    host_bytes_per_second_of_chip=_HOST_BYTES_PER_SECOND_OF_CHIP,
    throttle=None,
    fp8_formats=("cfp8", "float8_e4m3", "float8_e5m2", "float8_e3m4"),
    stated_tflops={"fp8": 190.0, "bf16": 190.0, "fp32": 47.5},
    source="hw nki-v2",
)

INF2 = replace(
    TRN1,
    name="inf2",
    product="AWS Inferentia2",
    aliases=("inferentia2",),
    link=Link(
        name="NeuronLink-v2",
        topology="ring",
        bytes_per_second_per_chip=192e9,
        bytes_per_second_per_channel=48e9,  # 2 neighbours, 2 directions
        bytes_per_second_in_chip=_IN_CHIP_BYTES_PER_SECOND,
        hop_us=1.5,
        source="hw collectives",
    ),
)

_TRN2_THROTTLE = Throttle(
    warm_up_us=3.0, start_fraction=0.5, rearm_fraction=0.5, source="profiler nki-v3"
)

TRN2 = Chip(
    name="trn2",
    product="AWS Trainium2",
    aliases=("trainium2", "gen3", "trn2n", "trn2u"),
    generation=3,
    core_name="NeuronCore-v3",
    num_cores=8,
    default_lnc=2,
    allowed_lnc=(1, 2),
    tensor=TensorEngine(
        clock_ghz=2.4,
        rows=128,
        columns=128,
        max_moving_free=512,
        fp32_passes=4,
        fp8_rows=256,
        mx_rows=None,
        min_issue_cycles=64,
        issue_gap_cycles=_ISSUE_GAP_CYCLES,
        pipeline_latency_ns=_PIPELINE_NS,
        stationary_load_speedup=4,
        source="nki-v3 perf-guide matmul-tutorial",
    ),
    vector=LaneEngine(
        name="vector",
        clock_ghz=0.96,
        lanes=128,
        max_fast_elements_per_lane_cycle=4,
        min_issue_cycles=64,
        fixed_ns=_VECTOR_FIXED_NS,
        source="nki-v3 matmul-tutorial isa-cost",
    ),
    scalar=LaneEngine(
        name="scalar",
        clock_ghz=1.2,
        lanes=128,
        max_fast_elements_per_lane_cycle=1,
        min_issue_cycles=64,
        fixed_ns=_SCALAR_FIXED_NS,
        source="nki-v3 dma-guide isa-cost",
    ),
    gpsimd=LaneEngine(
        name="gpsimd",
        clock_ghz=1.2,
        lanes=128,
        max_fast_elements_per_lane_cycle=1,
        min_issue_cycles=64,
        fixed_ns=125.0,  # 150 cycles of start-up
        source="nki-v3 isa-cost",
    ),
    activation_table_load_ns=1325.0,
    dynamic_offset_cycles=600,
    sbuf=_sbuf(28, "nki-v3"),
    psum=_psum("nki-v3"),
    hbm=Hbm(
        total_bytes=96 * GIB,
        stacks=4,
        # 4 stacks of 716.8 GB/s, the profiler's calibration; pages print 2.9 and 3 TB/s.
        bytes_per_second=4 * 716.8e9,
        efficiency=_HBM_EFFICIENCY,
        source="hw matmul-tutorial xpu-perf",
    ),
    dma=Dma(
        engines=16,
        queues_per_engine=16,
        peak_bytes_per_second_per_engine=27.2e9,
        bytes_per_second_per_engine=23e9,
        full_rate_descriptor_bytes=4096,
        transfer_latency_ns=860.0,
        trigger_static_ns=1000.0,
        trigger_dynamic_ns=700.0,
        completion_ns=300.0,
        hardware_dge_ns=600.0,
        # A gather of single elements took 5.9 ns each on the two cores of a logical core.
        software_descriptor_ns=11.8,
        transpose_hbm_efficiency=0.9,
        transpose_sbuf_efficiency=0.5,
        source="nki-v3 dma-guide xpu-perf",
    ),
    collective_cores=16,
    link=Link(
        name="NeuronLink-v3",
        topology="torus",
        bytes_per_second_per_chip=1280e9,
        # 1,024 GB/s inside the instance: 4 neighbours, 2 directions
        bytes_per_second_per_channel=128e9,
        bytes_per_second_in_chip=_IN_CHIP_BYTES_PER_SECOND,
        hop_us=1.5,
        source="hw collectives",
    ),
    host_bytes_per_second=_HOST_BYTES_PER_SECOND,
    host_bytes_per_second_of_chip=_HOST_BYTES_PER_SECOND_OF_CHIP,
    throttle=_TRN2_THROTTLE,
    fp8_formats=("float8_e4m3", "float8_e5m2", "float8_e3m4"),
    stated_tflops={"fp8": 1299.0, "bf16": 667.0, "fp32": 181.0, "sparse": 2563.0},
    source="hw nki-v3",
)

TRN3 = replace(
    TRN2,
    name="trn3",
    product="AWS Trainium3",
    aliases=("trainium3", "gen4", "trn3pre"),
    generation=4,
    core_name="NeuronCore-v4",
    tensor=replace(
        TRN2.tensor,
        max_moving_free=4096,
        mx_rows=512,
        source="nki-v4 perf-guide matmul-tutorial",
    ),
    vector=replace(TRN2.vector, clock_ghz=1.2, source="nki-v4 matmul-tutorial isa-cost"),
    scalar=replace(
        TRN2.scalar, max_fast_elements_per_lane_cycle=2, source="nki-v4 dma-guide isa-cost"
    ),
    gpsimd=replace(TRN2.gpsimd, source="nki-v4 isa-cost"),
    sbuf=_sbuf(32, "nki-v4"),
    psum=_psum("nki-v4"),
    hbm=Hbm(
        total_bytes=144 * GIB,
        stacks=4,
        bytes_per_second=4.9e12,
        efficiency=_HBM_EFFICIENCY,
        source="hw xpu-perf inference",  # efficiency as measured on trn2
    ),
    dma=replace(
        TRN2.dma,
        peak_bytes_per_second_per_engine=38.4e9,
        bytes_per_second_per_engine=33e9,
        source="nki-v4 dma-guide xpu-perf",
    ),
    link=Link(
        name="NeuronLink-v4",
        topology="switch",
        bytes_per_second_per_chip=2560e9,
        # Half of it sends, and the four logical cores share it.
        bytes_per_second_per_channel=320e9,
        bytes_per_second_in_chip=_IN_CHIP_BYTES_PER_SECOND,
        hop_us=1.5,
        source="hw collectives",
    ),
    throttle=replace(_TRN2_THROTTLE, source="profiler nki-v4"),
    fp8_formats=("float8_e4m3fn", "float8_e5m2"),
    stated_tflops={"mx": 2517.0, "fp8": 1299.0, "bf16": 671.0, "fp32": 183.0, "sparse": 2517.0},
    source="hw nki-v4",
)

CHIPS: tuple[Chip, ...] = (TRN1, INF2, TRN2, TRN3)

_BY_NAME: dict[str, Chip] = {row.name: row for row in CHIPS} | {
    alias: row for row in CHIPS for alias in row.aliases
}


def chip(name: str) -> Chip:
    """The chip called `name` ("trn2"), by product ("trainium2") or generation ("gen3")."""
    return find(_BY_NAME, name, kind="chip")

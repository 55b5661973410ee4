"""The records a chip is made of, and the chip itself. The rows are in `chips`.

Every numeric field names its unit. `None` means that no public source gives the number.
"""

from __future__ import annotations

from dataclasses import dataclass

from neuron_chip import sources

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True, kw_only=True)
class TensorEngine:
    """The systolic array: `rows` is the contraction axis, `columns` the stationary free axis."""

    clock_ghz: float
    rows: int
    columns: int
    max_moving_free: int
    """Largest free size of the moving operand in one instruction, in elements (fp32 in PSUM)."""
    fp32_passes: int
    fp8_rows: int
    """Contraction depth of one FP8 pass; more rows than the array means double-row mode."""
    mx_rows: int | None
    """Contraction depth of one MXFP8/MXFP4 pass, None where the format is missing."""
    min_issue_cycles: int
    issue_gap_cycles: int
    """Cycles lost between a stationary load and its moving pass when they follow back to back."""
    pipeline_latency_ns: float
    stationary_load_speedup: int
    """How many columns a stationary load writes while a moving pass would stream one."""
    source: str

    def __post_init__(self) -> None:
        sources.check(self.source)
        assert self.fp8_rows % self.rows == 0
        assert self.mx_rows is None or self.mx_rows % self.fp8_rows == 0

    @property
    def dense_flops_per_second(self) -> float:
        """bf16 rate: two operations per array cell and cycle."""
        return 2.0 * self.rows * self.columns * self.clock_ghz * 1e9


@dataclass(frozen=True, kw_only=True)
class LaneEngine:
    """An engine that works on one element of each of `lanes` partitions per cycle."""

    name: str
    clock_ghz: float
    lanes: int
    max_fast_elements_per_lane_cycle: int
    """Best performance mode: elements per lane and cycle for 16-bit SBUF-to-SBUF work."""
    min_issue_cycles: int
    fixed_ns: float
    """Start-up, memory access and completion of one instruction that waits for its input."""
    source: str

    def __post_init__(self) -> None:
        sources.check(self.source)
        assert self.clock_ghz > 0
        assert self.max_fast_elements_per_lane_cycle in (1, 2, 4)


@dataclass(frozen=True, kw_only=True)
class ScratchMemory:
    """A two-dimensional on-core memory: partitions times bytes per partition."""

    name: str
    partitions: int
    bytes_per_partition: int
    total_bytes: int
    bank_bytes_per_partition: int | None
    source: str

    def __post_init__(self) -> None:
        sources.check(self.source)
        assert self.total_bytes == self.partitions * self.bytes_per_partition
        bank = self.bank_bytes_per_partition
        assert bank is None or self.bytes_per_partition % bank == 0

    @property
    def banks(self) -> int | None:
        """Number of banks, None for a memory that is not banked."""
        bank = self.bank_bytes_per_partition
        return None if bank is None else self.bytes_per_partition // bank


@dataclass(frozen=True, kw_only=True)
class Hbm:
    """The chip's high-bandwidth memory."""

    total_bytes: int
    stacks: int
    bytes_per_second: float
    efficiency: float
    """Share of the nominal rate that a pure copy reaches."""
    source: str

    def __post_init__(self) -> None:
        sources.check(self.source)
        assert self.total_bytes % self.stacks == 0
        assert 0 < self.efficiency <= 1


@dataclass(frozen=True, kw_only=True)
class Dma:
    """The DMA engines of one physical core."""

    engines: int
    queues_per_engine: int
    peak_bytes_per_second_per_engine: float
    bytes_per_second_per_engine: float
    """What an engine delivers with descriptors of `full_rate_descriptor_bytes`."""
    full_rate_descriptor_bytes: int
    transfer_latency_ns: float
    """Least time from first byte to last of one transfer over 128 partitions, however small."""
    trigger_static_ns: float
    trigger_dynamic_ns: float
    completion_ns: float
    hardware_dge_ns: float | None
    software_descriptor_ns: float
    """Time that GpSimd needs to write one descriptor of an indirect transfer."""
    transpose_hbm_efficiency: float | None
    transpose_sbuf_efficiency: float | None
    source: str

    def __post_init__(self) -> None:
        sources.check(self.source)
        assert self.bytes_per_second_per_engine <= self.peak_bytes_per_second_per_engine

    @property
    def bytes_per_second(self) -> float:
        """Practical rate of all engines of the core."""
        return self.engines * self.bytes_per_second_per_engine

    @property
    def descriptor_ns(self) -> float:
        """Fixed time per descriptor: what separates the practical from the peak rate."""
        size = self.full_rate_descriptor_bytes
        practical_s = size / self.bytes_per_second_per_engine
        return 1e9 * (practical_s - size / self.peak_bytes_per_second_per_engine)


@dataclass(frozen=True, kw_only=True)
class Link:
    """Chip-to-chip interconnect."""

    name: str
    topology: str
    bytes_per_second_per_chip: float
    """All links of a chip together, both directions."""
    bytes_per_second_per_channel: float
    """One direction of the link that a ring of ranks runs over."""
    bytes_per_second_in_chip: float
    """One direction between two logical cores of a chip, through its HBM."""
    hop_us: float
    source: str

    def __post_init__(self) -> None:
        sources.check(self.source)
        assert self.topology in ("ring", "torus", "switch")


@dataclass(frozen=True, kw_only=True)
class Throttle:
    """Current-step limit of the tensor engine: slow for a moment after it was idle."""

    warm_up_us: float
    start_fraction: float
    rearm_fraction: float
    source: str

    def __post_init__(self) -> None:
        sources.check(self.source)
        assert 0 < self.start_fraction <= 1


@dataclass(frozen=True, kw_only=True)
class Chip:
    """One accelerator chip: what is on it and how fast each part is."""

    name: str
    product: str
    aliases: tuple[str, ...]
    generation: int
    core_name: str
    num_cores: int
    """Physical NeuronCores."""
    default_lnc: int
    """Physical cores that one logical core fuses, by default."""
    allowed_lnc: tuple[int, ...]
    tensor: TensorEngine
    vector: LaneEngine
    scalar: LaneEngine
    gpsimd: LaneEngine
    activation_table_load_ns: float
    dynamic_offset_cycles: int
    """Cycles to set up an access whose offset sits in a register."""
    sbuf: ScratchMemory
    psum: ScratchMemory
    hbm: Hbm
    dma: Dma
    collective_cores: int
    link: Link
    host_bytes_per_second: float
    """PCIe, one direction, for one or two logical cores that copy."""
    host_bytes_per_second_of_chip: float
    """The same for all logical cores together."""
    throttle: Throttle | None
    fp8_formats: tuple[str, ...]
    stated_tflops: dict[str, float]
    """What the data sheet promises per chip, by rate class; not what the model uses."""
    source: str

    def __post_init__(self) -> None:
        sources.check(self.source)
        assert self.default_lnc in self.allowed_lnc
        assert self.hbm.total_bytes % self.num_cores == 0
        assert self.sbuf.partitions == self.psum.partitions == self.tensor.rows
        assert self.psum.bank_bytes_per_partition is not None

    def check_lnc(self, lnc: int | None) -> int:
        """The logical-core size to use: `lnc`, or the default when it is None."""
        if lnc is None:
            return self.default_lnc
        if lnc not in self.allowed_lnc:
            allowed = " or ".join(str(size) for size in self.allowed_lnc)
            raise ValueError(
                f"{self.name} cannot fuse {lnc} physical cores into a logical core; "
                f"it allows {allowed}. Set NEURON_LOGICAL_NC_CONFIG to one of these."
            )
        return lnc

    def logical_cores(self, *, lnc: int | None = None) -> int:
        """Logical cores on the chip."""
        return self.num_cores // self.check_lnc(lnc)

    def hbm_bytes_per_logical_core(self, *, lnc: int | None = None) -> int:
        """HBM that belongs to one logical core."""
        return self.hbm.total_bytes // self.logical_cores(lnc=lnc)

    def hbm_bytes_per_second_per_logical_core(self, *, lnc: int | None = None) -> float:
        """Nominal HBM rate of one logical core's share."""
        return self.hbm.bytes_per_second / self.logical_cores(lnc=lnc)

    def peak_flops_per_second(self, *, lnc: int | None = None) -> float:
        """bf16 peak of one logical core at the real clock."""
        return self.tensor.dense_flops_per_second * self.check_lnc(lnc)

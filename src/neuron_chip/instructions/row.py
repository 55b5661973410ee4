"""What an instruction row says: engines, operands, limits, cost rule. No semantics, no rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from neuron_chip.dtypes import DTYPES

if TYPE_CHECKING:
    from neuron_chip.parts import Chip

SBUF, PSUM, HBM, REGISTER, IMMEDIATE = "sbuf", "psum", "hbm", "register", "immediate"
ON_CHIP = (SBUF, PSUM)

ANY_DTYPE: tuple[str, ...] = tuple(row.name for row in DTYPES if row.on_chip)
UNPACKED = tuple(row.name for row in DTYPES if row.on_chip and row.kind != "packed")
PACKED = tuple(row.name for row in DTYPES if row.kind == "packed")
FLOATS = tuple(row.name for row in DTYPES if row.on_chip and row.kind == "float")
INTEGERS = tuple(row.name for row in DTYPES if row.on_chip and row.kind in ("int", "uint"))
MATMUL_DTYPES = (
    *("float8_e4m3", "float8_e5m2", "float8_e4m3fn", "bfloat16", "float16", "tfloat32"),
    "float32",
)

# Rules between operands, by the name that a verifier and its error message use.
CONSTRAINTS: dict[str, str] = {
    "same_shape": "all tile operands have the same partition count and elements per partition",
    "same_dtype": "source and destination have the same dtype",
    "not_all_inputs_psum": "at most one of the tile inputs is in PSUM",
    "bitwise_needs_integers": "bitwise operators take integer dtypes and run on VectorE",
    "gpsimd_no_psum": "GpSimdE cannot access PSUM",
    "fp32_pairs_with_fp32": "float32 and tfloat32 operands pair only with each other",
    "e4m3_not_with_e4m3fn": "float8_e4m3 and float8_e4m3fn operands do not mix",
    "accumulate_into_psum": "the destination accumulates in fp32 in PSUM",
    "quadrant_aligned": "start partition 0, 32, 64 or 96, as the number of partitions allows",
    "scan_order": "elements are processed in order along the free axis",
    "lnc2_only": "only in a program that runs on two physical cores",
    "element_counts_equal": "source and destination have the same number of elements",
    "hardware_dge_same_dtype": "hardware descriptor generation cannot cast",
    "float_state": "the running state is fp32",
    "distinct_indices": "indices do not repeat",
}


@dataclass(frozen=True, kw_only=True)
class Operand:
    """One operand: where it may sit and how large it may be."""

    name: str
    role: str
    """"out", "in", "column" ([P, 1] tile or constant), "index" or "inout"."""
    memories: tuple[str, ...] = ON_CHIP
    dtypes: tuple[str, ...] = UNPACKED
    max_partitions: int | None = 128
    max_free: int | None = None
    min_free: int | None = None
    partition_multiple: int = 1
    free_multiple: int = 1
    optional: bool = False

    def __post_init__(self) -> None:
        assert self.role in ("out", "in", "column", "index", "inout"), self.name
        assert self.memories, self.name


@dataclass(frozen=True, kw_only=True)
class Issue:
    """One instruction as issued: the sizes that its cost depends on."""

    engine: str
    elements: int
    """Free elements per partition of the operand that the row's `cost_basis` names."""
    partitions: int = 128
    in_dtypes: tuple[str, ...] = ("float32",)
    out_dtype: str = "float32"
    in_memories: tuple[str, ...] = (SBUF,)
    out_memory: str = SBUF
    contiguous: bool = True
    op: str = ""
    stationary_free: int = 128
    reads_reduction: bool = False
    double_row: bool = False
    count: int = 1
    """Indices of a gather, k of a top-k, quantity that only this instruction has."""
    count_elements: int = 1
    """Elements per index."""
    value_is_zero: bool = False
    dynamic_offset: bool = False

    @property
    def dtypes(self) -> tuple[str, ...]:
        """All dtypes of the instruction."""
        return (*self.in_dtypes, self.out_dtype)

    @property
    def all_16bit(self) -> bool:
        """Whether the 16-bit performance modes are open to it."""
        return all(name in ("bfloat16", "float16") for name in self.dtypes)

    @property
    def all_sbuf(self) -> bool:
        """Whether no operand is in PSUM."""
        return PSUM not in (*self.in_memories, self.out_memory)


CostRule = Callable[[Issue, "Chip"], float]
"""Engine cycles between this issue and the next independent one."""


@dataclass(frozen=True, kw_only=True)
class InstructionRow:
    """One instruction of the tile-kernel language."""

    name: str
    summary: str
    engines: tuple[str, ...]
    """Engines that can run it; the first one is the default."""
    operands: tuple[Operand, ...]
    cost: CostRule | None
    """None for DMA and collective instructions, which `cost.dma` and `collectives` price."""
    cost_basis: str
    """The operand whose free size is `Issue.elements`."""
    cost_known: bool = True
    """False where no public text gives a formula and a like instruction's is used."""
    min_generation: int = 2
    min_generation_by_engine: dict[str, int] = field(default_factory=dict)
    constraints: tuple[str, ...] = ()
    source: str = "isa-cost"

    def __post_init__(self) -> None:
        known = ("tensor", "vector", "scalar", "gpsimd", "dma", "sync", "collective")
        assert self.engines, self.name
        assert all(engine in known for engine in self.engines), self.name
        assert all(constraint in CONSTRAINTS for constraint in self.constraints), self.name
        names = [operand.name for operand in self.operands]
        assert len(names) == len(set(names)), self.name
        assert not names or self.cost_basis in names, self.name
        assert all(engine in self.engines for engine in self.min_generation_by_engine), self.name

    def operand(self, name: str) -> Operand:
        """The operand of that name."""
        return next(each for each in self.operands if each.name == name)

    def engines_on(self, generation: int) -> tuple[str, ...]:
        """Engines that can run it on chips of a generation."""
        if generation < self.min_generation:
            return ()
        return tuple(
            engine
            for engine in self.engines
            if generation >= self.min_generation_by_engine.get(engine, self.min_generation)
        )

"""What instructions choose from: engines, DMA modes, accumulator commands; AWS's names."""

from __future__ import annotations

from enum import Enum, IntEnum


class engine(Enum):  # noqa: N801
    """Which engine executes an instruction."""

    unknown = 0
    tensor = 1
    scalar = 2
    gpsimd = 3
    dma = 4
    vector = 5
    sync = 6


Engine = engine
"""The same class where `engine` names a parameter."""


class reduce_cmd(Enum):  # noqa: N801
    """What happens to the engine's accumulator registers."""

    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4


class dge_mode(Enum):  # noqa: N801
    """Who writes the DMA descriptors."""

    unknown = 0
    swdge = 1
    hwdge = 2
    none = 3


class oob_mode(Enum):  # noqa: N801
    """What an index out of range does."""

    error = 0
    skip = 1


class matmul_perf_mode(Enum):  # noqa: N801
    """Special modes of nc_matmul."""

    none = "none"
    double_row = "double_row"


class nc_version(IntEnum):  # noqa: N801
    """Generation of the NeuronCore; ordered."""

    gen2 = 2
    gen3 = 3
    gen4 = 4


class dma_engine(Enum):  # noqa: N801
    """Who moves the bytes of a sendrecv."""

    dma = 1
    gpsimd_dma = 2

"""Software stacks, one row each: what starting work costs the host. Chip facts are in `chips`."""

from __future__ import annotations

from dataclasses import dataclass

from neuron_chip import sources
from neuron_chip.lookup import find

# Share of the shorter engines' time that does not hide behind the longest: 0 is a perfect
# pipeline, 1 no overlap at all. The value of single operators and hand-written kernels comes from
# the element-wise and GEMM rows marked as guides in docs/accuracy.md, that of whole graphs which
# the compiler schedules from two prefill rows.
EXPOSED_SHARE = 0.15
EXPOSED_SHARE_OF_GRAPHS = 0.7


@dataclass(frozen=True, kw_only=True)
class Stack:
    """How work reaches the chip, and what each start and each read-back costs."""

    name: str
    meaning: str
    launch_us: float
    """Host and device time of one start, from call to call, beyond the work itself."""
    read_back_us: float
    """Extra time until the host holds a result."""
    busy_neighbour_launch_us: float | None
    """Launch time when every logical core of the chip is launching small work."""
    source: str
    exposed_share: float = EXPOSED_SHARE
    """How much of the shorter engines' time shows."""

    def __post_init__(self) -> None:
        sources.check(self.source)
        assert 0.0 <= self.exposed_share <= 1.0


STACKS: tuple[Stack, ...] = (
    Stack(
        name="device",
        meaning="device time only, as a profiler reports it",
        launch_us=0.0,
        read_back_us=0.0,
        busy_neighbour_launch_us=None,
        source="profiler",
    ),
    Stack(
        name="eager",
        meaning="native PyTorch, one launch per operation",
        # 1024x1024 bf16 additions took 45-53 us, some 10 of them on the device, and links of a
        # chain 64 us each with 10 on the device: the middle of 40 and 54.
        launch_us=48.0,
        read_back_us=75.0,  # 130 us for call and read-back of a small result
        busy_neighbour_launch_us=632.0,
        source="xpu-perf kiln",
    ),
    Stack(
        name="compiled",
        meaning="torch.compile, one launch per graph",
        # 73-80 us for graphs of one small operation, some 10 of them on the device.
        launch_us=66.0,
        read_back_us=75.0,
        busy_neighbour_launch_us=632.0,
        source="xpu-perf kiln",
    ),
    Stack(
        name="runtime",
        meaning="compiled graphs around hand-written kernels, called asynchronously",
        launch_us=62.0,
        read_back_us=71.0,  # 133 us with read-back
        busy_neighbour_launch_us=None,
        source="kiln",
    ),
    Stack(
        name="serving",
        meaning="a serving engine whose whole graphs the compiler schedules",
        launch_us=62.0,
        read_back_us=71.0,
        busy_neighbour_launch_us=None,
        source="kiln",
        exposed_share=EXPOSED_SHARE_OF_GRAPHS,
    ),
    Stack(
        name="xla",
        meaning="PyTorch/XLA, one launch per graph cut",
        launch_us=660.0,
        read_back_us=0.0,
        busy_neighbour_launch_us=None,
        source="xpu-perf",
    ),
)

_BY_NAME: dict[str, Stack] = {row.name: row for row in STACKS}


def stack(name: str) -> Stack:
    """The row of a software stack: "device", "eager", "compiled", "runtime", ...."""
    return find(_BY_NAME, name, kind="software stack")

"""One row per instruction of the tile-kernel language: what it accepts and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuron_chip.instructions import collective, dma, gpsimd, scalar, sync, tensor, vector
from neuron_chip.instructions.row import CONSTRAINTS, InstructionRow, Issue, Operand
from neuron_chip.lookup import find

if TYPE_CHECKING:
    from neuron_chip.parts import Chip

INSTRUCTIONS: tuple[InstructionRow, ...] = (
    *tensor.ROWS,
    *vector.ROWS,
    *scalar.ROWS,
    *gpsimd.ROWS,
    *dma.ROWS,
    *sync.ROWS,
    *collective.ROWS,
)

_BY_NAME: dict[str, InstructionRow] = {row.name: row for row in INSTRUCTIONS}
assert len(_BY_NAME) == len(INSTRUCTIONS), "two rows describe the same instruction"


def instruction(name: str) -> InstructionRow:
    """The row of an instruction by its name in `nki.isa` or `nki.collectives`."""
    return find(_BY_NAME, name, kind="instruction")


def issue_cycles(name: str, issue: Issue, chip: Chip) -> float:
    """Engine cycles from this issue to the next independent one."""
    row = instruction(name)
    if row.cost is None:
        raise ValueError(
            f"{name} runs on {row.engines[0]}, not on an engine clock; price it with "
            "cost.dma_seconds or collectives.collective_time."
        )
    return row.cost(issue, chip)


def issue_seconds(name: str, issue: Issue, chip: Chip) -> float:
    """The same in seconds of the engine's clock."""
    hz = {
        "tensor": chip.tensor.clock_ghz,
        "vector": chip.vector.clock_ghz,
        "gpsimd": chip.gpsimd.clock_ghz,
    }.get(issue.engine, chip.scalar.clock_ghz) * 1e9
    return issue_cycles(name, issue, chip) / hz


def completion_seconds(issue: Issue, chip: Chip) -> float:
    """Extra time until a waiting instruction may use the result."""
    if issue.engine == "tensor":
        return chip.tensor.pipeline_latency_ns * 1e-9
    if issue.engine in ("vector", "scalar", "gpsimd"):
        engine = getattr(chip, issue.engine)
        return float(engine.fixed_ns) * 1e-9
    return 0.0


__all__ = [
    "CONSTRAINTS",
    "INSTRUCTIONS",
    "InstructionRow",
    "Issue",
    "Operand",
    "completion_seconds",
    "instruction",
    "issue_cycles",
    "issue_seconds",
]

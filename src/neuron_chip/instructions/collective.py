"""Rows of collective instructions; `collectives` prices them from group and bytes."""

from __future__ import annotations

from neuron_chip.instructions.row import HBM, SBUF, InstructionRow, Operand


def _row(name: str, summary: str, *, memories: tuple[str, ...] = (HBM, SBUF)) -> InstructionRow:
    return InstructionRow(
        name=name,
        summary=summary,
        engines=("collective",),
        operands=(
            Operand(name="srcs", role="in", memories=memories, max_partitions=None),
            Operand(name="dsts", role="out", memories=memories, max_partitions=None),
        ),
        cost=None,
        cost_basis="srcs",
        source="collectives",
    )


ROWS = (
    _row("all_reduce", "reduction over the ranks of a group, everywhere"),
    _row("all_gather", "concatenation over the ranks of a group"),
    _row("all_gather_v", "all_gather with lengths known at run time"),
    _row("reduce_scatter", "reduction over the ranks, each keeps its part"),
    _row("all_to_all", "exchange of parts between all ranks", memories=(HBM,)),
    _row("all_to_all_v", "all_to_all with lengths known at run time"),
    _row("collective_permute", "send along explicit pairs", memories=(HBM,)),
    _row("collective_permute_implicit", "one step of a ring"),
    _row("collective_permute_implicit_reduce", "one reducing step of a ring"),
)

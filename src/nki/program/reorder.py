"""Another order of a program's instructions that keeps fewer tensors alive, as a compiler has.

Each tensor is computed only when something that is written out, or comes next, needs it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nki.program.ir import Loop, NkiInstruction, Program, While


def late_ranges(program: Program) -> dict[int, tuple[int, int]]:
    """First and last use of each on-chip allocation in the late order; a loop is one step."""
    nodes = _nodes(program)
    uses = [_uses(node) for node in nodes]
    ranges: dict[int, tuple[int, int]] = {}
    for clock, node in enumerate(_late_order(uses)):
        for index in (*uses[node][0], *uses[node][1]):
            first, _ = ranges.get(index, (clock, clock))
            ranges[index] = (first, clock)
    return ranges


def _nodes(program: Program) -> list[NkiInstruction | Loop | While]:
    from nki.program.ir import Allocation

    return [item for item in program.body.items if not isinstance(item, Allocation)]


def _uses(node: NkiInstruction | Loop | While) -> tuple[set[int], set[int]]:
    """Storages that are read and written."""
    from nki.program.ir import Loop, NkiInstruction, While

    if isinstance(node, NkiInstruction):
        reads = {tensor.storage.index for tensor in node.tensors_in()}
        return reads, {tensor.storage.index for tensor in node.outputs.values()}
    reads, writes = set[int](), set[int]()
    for item in node.body.items:
        if isinstance(item, NkiInstruction | Loop | While):
            more_reads, more_writes = _uses(item)
            reads |= more_reads
            writes |= more_writes
    return reads, writes


def _late_order(uses: list[tuple[set[int], set[int]]]) -> list[int]:
    """Depth first from the instructions whose results nothing else needs, in program order."""
    depends = _dependencies(uses)
    needed = {other for node in depends for other in node}
    done: set[int] = set()
    order: list[int] = []
    for root in (node for node in range(len(uses)) if node not in needed):
        stack = [root]
        while stack:
            node = stack[-1]
            if node in done:
                stack.pop()
                continue
            missing = [other for other in depends[node] if other not in done]
            if missing:
                stack.append(missing[0])
            else:
                done.add(node)
                order.append(node)
                stack.pop()
    return order


def _dependencies(uses: list[tuple[set[int], set[int]]]) -> list[list[int]]:
    """Earlier nodes that must come first, by allocation: readers after writers and reverse."""
    writer: dict[int, int] = {}
    readers: dict[int, list[int]] = defaultdict(list)
    found: list[list[int]] = []
    for node, (reads, writes) in enumerate(uses):
        earlier = {writer[index] for index in reads | writes if index in writer}
        for index in writes:
            earlier.update(other for other in readers[index] if other != node)
            writer[index] = node
            readers[index] = []
        for index in reads - writes:
            readers[index].append(node)
        found.append(sorted(earlier - {node}))
    return found

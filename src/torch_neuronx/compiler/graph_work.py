"""What a captured graph costs the chip: the work of its operators, started once.

Fusion is not counted: what one operator hands the next is written and read, an upper bound.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_map

from neuron_chip import Work, total
from neuron_chip.counts import launch
from torch_neuronx.ops.costs import Call, Machine, work_of


def graph_work(gm: GraphModule, machine: Machine) -> Work:
    """The work of one run of the graph."""
    parts = [
        replace(work_of(_call(node), machine), launches=0.0)
        for node in gm.graph.nodes
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)
    ]
    return total([*parts, launch()])


def _call(node: Node) -> Call:
    target: Any = node.target
    name = target._schema.name
    if target._overloadname != "default":
        name = f"{name}.{target._overloadname}"
    arguments = tree_map(_raw, [*node.args, *node.kwargs.values()])
    results: Any = node.meta.get("val")
    several = isinstance(results, list | tuple)
    return Call.from_parts(
        (name, arguments, tree_map(_raw, list(results) if several else [results]))
    )


def _raw(value: Any) -> Any:
    """Metadata in the observer's form; sizes that are symbols count with their hints."""
    if isinstance(value, Node):
        value = value.meta.get("val")
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        sizes = tuple(_number(size) for size in value.shape)
        strides = tuple(_number(stride) for stride in value.stride())
        return _Metadata((value.device.type == "neuron", dtype, sizes, strides))
    if isinstance(value, torch.SymInt):
        return _number(value)
    return value


class _Metadata(tuple[bool, str, tuple[int, ...], tuple[int, ...]]):
    """A leaf to `tree_map`, a tuple to `Call`."""

    __slots__ = ()


def _number(size: Any) -> int:
    hint = getattr(getattr(size, "node", None), "hint", None)
    return int(hint) if hint is not None else int(size)

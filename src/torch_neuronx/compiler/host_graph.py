"""A captured neuron graph seen as a graph of the host CPU that computes its values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import GraphModule
from torch.utils._pytree import tree_leaves, tree_map

_CPU = torch.device("cpu")


def device_of(gm: GraphModule, example_inputs: Sequence[Any]) -> torch.device | None:
    """The neuron device the graph runs on, None if it touches none."""
    for value in _values(gm, example_inputs):
        if isinstance(value, torch.Tensor) and value.device.type == "neuron":
            return value.device
    return None


def output_devices(gm: GraphModule) -> list[torch.device | None]:
    """Where each result belongs; None for results that are not tensors."""
    (output,) = gm.graph.find_nodes(op="output")
    return [
        node.meta["val"].device
        if isinstance(node, torch.fx.Node) and isinstance(node.meta.get("val"), torch.Tensor)
        else None
        for node in tree_leaves(output.args[0])
    ]


def retarget_arguments(gm: GraphModule) -> None:
    """Replace neuron by CPU wherever a node names a device, and constants by host ones."""

    def to_host(value: Any) -> Any:
        if isinstance(value, torch.device) and value.type == "neuron":
            return _CPU
        return value

    for node in gm.graph.nodes:
        node.args = tree_map(to_host, node.args)
        node.kwargs = tree_map(to_host, node.kwargs)
        if node.op == "get_attr":
            constant = getattr(gm, node.target, None)
            if isinstance(constant, torch.Tensor) and constant.device.type == "neuron":
                setattr(gm, node.target, constant.cpu())
    for child in gm.children():
        if isinstance(child, GraphModule):
            retarget_arguments(child)


@contextmanager
def fakes_on_host(gm: GraphModule, example_inputs: Sequence[Any]) -> Iterator[None]:
    """While it lasts, the graph's fake tensors say they are on the CPU.

    Changed in place and restored: copies would lose which values share a storage, which decides
    whether an op may be done in place.
    """
    changed: list[tuple[FakeTensor, torch.device]] = []
    for value in _values(gm, example_inputs):
        if isinstance(value, FakeTensor) and value.fake_device.type == "neuron":
            changed.append((value, value.fake_device))
            value.fake_device = _CPU
    try:
        yield
    finally:
        for value, device in changed:
            value.fake_device = device


def _values(gm: GraphModule, example_inputs: Sequence[Any]) -> Iterator[Any]:
    yield from example_inputs
    for node in gm.graph.nodes:
        for key in ("val", "example_value", "eager_input_vals"):
            yield from tree_leaves(node.meta.get(key))
    for child in gm.children():
        if isinstance(child, GraphModule):
            yield from _values(child, ())

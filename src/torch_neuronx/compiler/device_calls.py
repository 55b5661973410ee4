"""Where a compiled graph calls this device's own kernels instead of the CPU's.

`aten::mm` on the CPU alias would run ATen's kernel; `neuron::mm` runs ours on the same memory
(`csrc/dispatch/device_call.cpp`). Three kinds of operator are replaced:

- random ones draw from the device's Philox generator, so that numbers are those of eager;
- products and convolutions in bfloat16 and float16, which ATen-CPU runs in scalar loops where the
  CPU has no instructions for them;
- attention in every dtype.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import torch
from torch._functorch._aot_autograd.utils import register_graphsafe_rng_device_type
from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

_aten = torch.ops.aten
_ATTENTION = (
    _aten._scaled_dot_product_flash_attention_for_cpu.default,
    _aten._scaled_dot_product_flash_attention_for_cpu_backward.default,
)
_PRODUCTS = (
    _aten.mm.default,
    _aten.addmm.default,
    _aten.bmm.default,
    _aten.baddbmm.default,
    _aten.convolution.default,
    _aten.convolution_backward.default,
    _aten._scaled_mm.default,
)
_NARROW = (torch.bfloat16, torch.float16)

_to_dtype = torch.ops.prims.convert_element_type.default

RNG_STATE_BYTES = 16


def place(gm: GraphModule) -> None:
    """Replace the operators of `gm`, and of the graphs inside it, that run on a neuron device."""
    for node in list(gm.graph.nodes):
        if node.op != "call_function" or not _is_on_neuron(node):
            continue
        if node.target is run_and_save_rng_state:
            _replace_saving(node)
        elif node.target is run_with_rng_state:
            state, target, *args = node.args
            _replace(node, target, tuple(args), {**node.kwargs, "rng_state": state})
        elif node.target is _aten.histc.default:
            _count_integers_as_doubles(node)
        elif _has_own_kernel(node):
            _replace(node, node.target, node.args, dict(node.kwargs))
    for child in gm.children():
        if isinstance(child, GraphModule):
            place(child)
    gm.recompile()


@functools.cache
def register() -> None:
    """Tell PyTorch about the neuron operators and the device's RNG states; once a process."""
    # A state that a forward graph saves for recomputation then has our 16 bytes.
    register_graphsafe_rng_device_type("neuron")
    for aten_op in (*_ATTENTION, *_PRODUCTS, *_random_operators()):
        device_op = _device_operator(aten_op)
        torch.library.register_fake(device_op, functools.partial(_fake, aten_op))
    torch.library.register_fake(
        torch.ops.neuron.rng_state.default,
        lambda: torch.empty(RNG_STATE_BYTES, dtype=torch.uint8),
    )


def _random_operators() -> list[torch._ops.OpOverload]:
    found = []
    for name in torch._C._dispatch_get_all_op_names():
        if name.startswith("neuron::") and name != "neuron::rng_state":
            packet, _, overload = name.removeprefix("neuron::").partition(".")
            aten_op = getattr(getattr(_aten, packet), overload or "default")
            if aten_op not in _PRODUCTS and aten_op not in _ATTENTION:
                found.append(aten_op)
    return found


def _fake(aten_op: torch._ops.OpOverload, *args: Any, **kwargs: Any) -> Any:
    kwargs.pop("rng_state", None)
    results = aten_op(*args, **kwargs)

    def laid_out(result: torch.Tensor) -> torch.Tensor:
        if aten_op in _ATTENTION and result.dim() == 4:
            return result
        return result.new_empty(result.shape)

    return tree_map_only(torch.Tensor, laid_out, results)


def _device_operator(aten_op: Any) -> Any:
    packet = getattr(torch.ops.neuron, aten_op._opname, None)
    return getattr(packet, aten_op._overloadname, None)


def _has_own_kernel(node: Node) -> bool:
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
        return False
    if target in _ATTENTION:
        return True
    if target in _PRODUCTS:
        return (
            any(
                isinstance(value, torch.Tensor) and value.dtype in _NARROW
                for value in _values(node)
            )
            or target is _aten._scaled_mm.default
        )
    return torch.Tag.nondeterministic_seeded in target.tags and _device_operator(target) is not None


def _values(node: Node) -> list[Any]:
    """What the node returns; a wrapped random operator has no value of its own, its uses have."""
    if "val" in node.meta:
        return tree_leaves(node.meta["val"])
    uses = [user.meta.get("val") for user in node.users if user.target is operator.getitem]
    return tree_leaves(uses)


def _is_on_neuron(node: Node) -> bool:
    if node.target is run_with_rng_state:
        # Has no metadata but the state's, and a state of the CPU's generator is larger.
        state = node.args[0]
        assert isinstance(state, Node)
        return bool(state.meta["val"].numel() == RNG_STATE_BYTES)
    return any(
        isinstance(value, torch.Tensor) and value.device.type == "neuron" for value in _values(node)
    )


def _replace(node: Node, aten_op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node:
    graph = node.graph
    with graph.inserting_before(node):
        device_op = _device_operator(aten_op)
        call = graph.call_function(device_op, args, kwargs)
    call.meta = dict(node.meta)
    if torch.Tag.needs_exact_strides in device_op.tags:
        # The strides that the kernel would see in eager; Inductor lays inputs out so.
        call.meta["eager_input_vals"] = tree_map(
            lambda item: item.meta.get("val") if isinstance(item, Node) else item, (args, kwargs)
        )
    node.replace_all_uses_with(call)
    graph.erase_node(node)
    return call


def _count_integers_as_doubles(node: Node) -> None:
    """histc of integers, which the CPU refuses, as `csrc/dispatch/histogram.cpp` does it."""
    (counts,) = _values(node)
    if counts.dtype.is_floating_point:
        return
    graph = node.graph
    source = node.args[0]
    assert isinstance(source, Node)
    with graph.inserting_before(node):
        doubles = graph.call_function(_to_dtype, (source, torch.float64))
        doubles.meta["val"] = source.meta["val"].to(torch.float64)
    with graph.inserting_after(node):
        integers = graph.call_function(_to_dtype, (node, counts.dtype))
        integers.meta["val"] = counts
    node.replace_all_uses_with(integers, delete_user_cb=lambda user: user is not integers)
    node.replace_input_with(source, doubles)
    node.meta["val"] = counts.to(torch.float64)


def _replace_saving(node: Node) -> None:
    """(state, results) = run_and_save_rng_state(op, ...): the state is read, then op runs."""
    graph = node.graph
    target, *args = node.args
    state_uses = [user for user in node.users if user.args[1] == 0]
    result_uses = [user for user in node.users if user.args[1] == 1]
    with graph.inserting_before(node):
        state = graph.call_function(torch.ops.neuron.rng_state.default)
        call = graph.call_function(_device_operator(target), tuple(args), dict(node.kwargs))
    for users, replacement in ((state_uses, state), (result_uses, call)):
        for user in users:
            assert user.target is operator.getitem
            replacement.meta.update(user.meta)
            user.replace_all_uses_with(replacement)
            graph.erase_node(user)
    graph.erase_node(node)

"""The Dynamo backend "neuron": AOTAutograd, then Inductor's C++ on aliases of device memory.

The graph is captured on neuron tensors and compiled for the CPU that computes their values; nothing
is copied between devices. Options are in `options`, running a compiled graph in `executable`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from torch.fx import GraphModule

from torch_neuronx import _C
from torch_neuronx.compiler.options import ALWAYS, inductor_patches, without_device_graphs


def neuron_backend(
    gm: GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile what Dynamo captured.

    Args:
        gm: the captured graph.
        example_inputs: fake tensors on neuron (and CPU scalars), symbolic sizes included.
        mode: of torch.compile.
        options: of torch.compile; see `options.inductor_patches`.

    Raises:
        OptionError: an option, mode or value that does not exist, with the nearest that does.
    """
    return compile_graph_of(gm, example_inputs, inductor_patches(mode=mode, options=options))


def compile_graph_of(
    gm: GraphModule, example_inputs: Sequence[Any], patches: dict[str, Any], **more: Any
) -> Callable[..., Any]:
    """Compile with Inductor's configuration as changed by `patches`.

    Args:
        gm: the captured graph.
        example_inputs: fake tensors.
        patches: of Inductor's configuration.
        more: further arguments of compile_fx.
    """
    if _C._is_dry():
        # Nothing to compile for: the graph's operators run dry, one by one.
        return cast(Callable[..., Any], gm)
    from torch._inductor.compile_fx import compile_fx

    from torch_neuronx.compiler import device_calls
    from torch_neuronx.compiler.executable import compile_graph

    device_calls.register()
    compiled: Any = compile_fx(
        gm,
        example_inputs,
        inner_compile=cast(Any, compile_graph),
        config_patches=without_device_graphs(patches) | ALWAYS,
        **more,
    )
    return cast(Callable[..., Any], compiled)

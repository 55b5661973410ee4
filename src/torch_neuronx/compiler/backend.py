"""The Dynamo backend "neuron": AOTAutograd, then Inductor's C++ on aliases of device memory.

The graph is captured on neuron tensors and compiled for the CPU that computes their values; nothing
is copied between devices. Options are in `options`, running a compiled graph in `executable`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from torch.fx import GraphModule

from torch_neuronx import _C
from torch_neuronx.compiler.options import inductor_patches


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
        options: of torch.compile; see `options.OPTIONS`.

    Raises:
        OptionError: an option or mode that does not exist, with the nearest that does.
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
        config_patches=inductor_patches(mode=mode, options=options),
    )
    return cast(Callable[..., Any], compiled)

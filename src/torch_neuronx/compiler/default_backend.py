"""Plain torch.compile, whose default backend is "inductor", on neuron tensors.

A patch of PyTorch like those in `device.patches`; here because it needs the compiler.
"""

from __future__ import annotations

import functools
from typing import Any

import torch


def install() -> None:
    """Compile graphs that touch a neuron device as backend "neuron" does; all others stay.

    Inductor has no code generator for the device and would fail deep inside.
    """
    wrapper = torch._TorchCompileInductorWrapper
    original = wrapper.__call__

    @functools.wraps(original)
    def compiled(
        self: Any, model_: Any, inputs_: Any, *, config_patches: dict[str, Any] | None = None
    ) -> Any:
        from torch_neuronx.compiler import backend, host_graph

        if host_graph.device_of(model_, inputs_) is None:
            return original(self, model_, inputs_, config_patches=config_patches)
        patches = {**self.config, **(config_patches or {})}
        return backend.compile_graph_of(model_, inputs_, patches, compile_region_name=self.name)

    wrapper.__call__ = compiled  # type: ignore[method-assign]

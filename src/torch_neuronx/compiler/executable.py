"""From a captured graph to something that runs on neuron tensors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from neuron_chip import Work
from torch_neuronx import _C
from torch_neuronx.clock import pricing
from torch_neuronx.compiler import device_calls, host_graph
from torch_neuronx.compiler.graph_work import graph_work

_graphs = itertools.count()


class Executable:
    """A compiled graph; called with a list of inputs, which it may empty to free memory early."""

    def __init__(
        self,
        host_call: Callable[[list[Any]], Sequence[Any]],
        *,
        device: torch.device,
        outputs: list[torch.device | None],
        name: str,
        work: Work,
    ) -> None:
        # AOTAutograd's sign for "takes one list"; in __dict__, which its wrappers copy.
        self._boxed_call = True
        self._host_call = host_call
        self._device_index = device.index or 0
        self._cpu_outputs = [
            index for index, where in enumerate(outputs) if where == torch.device("cpu")
        ]
        self._name = name
        self._modelled_name = f"{name}_{next(_graphs)}"
        pricing.name_graph(self._modelled_name, work)

    def __call__(self, inputs: list[Any]) -> list[Any]:
        """Run on neuron tensors; results are neuron tensors unless the graph moved them.

        Raises:
            RuntimeError: the driver is "dry", and the graph was compiled for another.
        """
        if _C._is_dry():
            raise RuntimeError(
                "A graph that was compiled under the driver 'host' cannot run under 'dry'. Call "
                "torch.compiler.reset() when the driver changes."
            )
        if _C._observer_on():
            stream = torch._C._accelerator_getStream(self._device_index)
            _C._observe(self._modelled_name, [], self._device_index, stream.stream_id)
        results = _C._run_on_host(self._host_call, inputs, self._device_index, self._name)
        for index in self._cpu_outputs:
            if isinstance(results[index], torch.Tensor):
                results[index] = results[index].cpu()
        inputs.clear()
        return results


def compile_graph(
    gm: GraphModule, example_inputs: Sequence[Any], **kwargs: Any
) -> Callable[[list[Any]], Any]:
    """Compile one forward or backward graph; the inner compiler of compile_fx."""
    from torch._inductor.compile_fx import compile_fx_inner

    device = host_graph.device_of(gm, example_inputs)
    if device is None:
        return compile_fx_inner(gm, example_inputs, **kwargs)
    outputs = host_graph.output_devices(gm)
    work = graph_work(gm, pricing.machine())
    device_calls.place(gm)
    host_graph.retarget_arguments(gm)
    with host_graph.fakes_on_host(gm, example_inputs):
        host_call = compile_fx_inner(gm, example_inputs, **kwargs)
    name = "neuron::compiled_backward" if kwargs.get("is_backward") else "neuron::compiled"
    return Executable(host_call, device=device, outputs=outputs, name=name, work=work)

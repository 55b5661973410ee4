"""The c10d backend "neuron": Gloo carries the bytes of neuron tensors, which host memory holds.

Collectives run when they are called and have finished when the call returns, with `async_op` too.
Shared memory inside a machine and overlap with compute are not here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, cast

import torch
import torch.distributed as dist
from torch.futures import Future
from torch.utils._pytree import tree_flatten, tree_unflatten

from torch_neuronx import _C, settings
from torch_neuronx.distributed.dry_group import DryProcessGroup, observe, stride_of
from torch_neuronx.distributed.group import NeuronGroup

# c10d's names, and Gloo's for the same.
_COLLECTIVES = {
    "allreduce": "allreduce",
    "allreduce_coalesced": "allreduce_coalesced",
    "allgather": "allgather",
    "allgather_coalesced": "allgather_coalesced",
    "all_gather_single": "_allgather_base",
    "_allgather_base": "_allgather_base",
    "alltoall": "alltoall",
    "all_to_all_single": "alltoall_base",
    "alltoall_base": "alltoall_base",
    "broadcast": "broadcast",
    "gather": "gather",
    "recv": "recv",
    "recv_anysource": "recv_anysource",
    "reduce": "reduce",
    "reduce_scatter": "reduce_scatter",
    "reduce_scatter_single": "_reduce_scatter_base",
    "_reduce_scatter_base": "_reduce_scatter_base",
    "scatter": "scatter",
    "send": "send",
}
# Lists of pairs, one collective for each.
_PAIRWISE = {
    "all_gather_single_coalesced": "_allgather_base",
    "allgather_into_tensor_coalesced": "_allgather_base",
    "reduce_scatter_single_coalesced": "_reduce_scatter_base",
    "reduce_scatter_tensor_coalesced": "_reduce_scatter_base",
}


class NeuronProcessGroup(NeuronGroup):
    """A process group of neuron (and CPU) tensors over Gloo.

    Args:
        gloo: the group that communicates.
        rank: of this process.
        size: number of processes.
        stride: between the ranks of neighbours.
    """

    def __init__(
        self, gloo: dist.ProcessGroupGloo, rank: int, size: int, *, stride: int = 1
    ) -> None:
        super().__init__(rank, size)
        self._gloo = gloo
        self._stride = stride

    def barrier(  # type: ignore[override]
        self, opts: dist.BarrierOptions | None = None
    ) -> dist.Work:
        """Wait for every process."""
        cast(Any, self._gloo).barrier(opts or dist.BarrierOptions()).wait()
        return _finished([])

    def _run(self, name: str, arguments: tuple[Any, ...]) -> dist.Work:
        leaves, spec = tree_flatten(arguments)
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        tensors = [leaves[place] for place in places]
        device = next((t.device.index for t in tensors if t.device.type == "neuron"), None)

        def communicate(on_host: list[torch.Tensor]) -> list[torch.Tensor]:
            replaced = list(leaves)
            for place, tensor in zip(places, on_host, strict=True):
                replaced[place] = tensor
            getattr(self._gloo, name)(*tree_unflatten(replaced, spec)).wait()
            return []

        if device is None:
            communicate(tensors)
        else:
            _C._run_on_host(communicate, tensors, device, f"c10d::{name}")
        return _finished(arguments[0])


def _finished(result: Any) -> dist.Work:
    future: Future[Any] = Future()
    future.set_result(result)
    c10d: Any = torch._C._distributed_c10d
    return cast(dist.Work, c10d._create_work_from_future(future))


def _collective(name: str, gloo_name: str) -> Callable[..., dist.Work]:
    def call(self: NeuronProcessGroup, *arguments: Any) -> dist.Work:
        work = self._run(gloo_name, arguments)
        observe(name, arguments, self._size, self._stride)
        return work

    call.__name__ = name
    call.__doc__ = f"c10d's {name} on neuron tensors."
    return call


def _pairwise(name: str, gloo_name: str) -> Callable[..., dist.Work]:
    def call(
        self: NeuronProcessGroup,
        outputs: list[torch.Tensor],
        inputs: list[torch.Tensor],
        *options: Any,
    ) -> dist.Work:
        for output, value in zip(outputs, inputs, strict=True):
            self._run(gloo_name, (output, value, *options))
        observe(name, (outputs, inputs), self._size, self._stride)
        return _finished(outputs)

    call.__name__ = name
    call.__doc__ = f"c10d's {name} on neuron tensors."
    return call


for _name, _gloo_name in _COLLECTIVES.items():
    setattr(NeuronProcessGroup, _name, _collective(_name, _gloo_name))
for _name, _gloo_name in _PAIRWISE.items():
    setattr(NeuronProcessGroup, _name, _pairwise(_name, _gloo_name))


def _create(options: Any, backend_options: Any) -> dist.ProcessGroup:
    del backend_options
    rank, size = options.group_rank, options.group_size
    if _C._is_dry():
        return DryProcessGroup(rank, size, options.global_ranks_in_group)
    timeout: timedelta = options.timeout
    gloo = dist.ProcessGroupGloo(options.store, rank, size, timeout)
    return NeuronProcessGroup(gloo, rank, size, stride=stride_of(options.global_ranks_in_group))


def _rendezvous_when_dry(original: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    # The other ranks of a dry run do not exist, so there is nobody to meet.
    @functools.wraps(original)
    def meet(url: str, rank: int = -1, world_size: int = -1, **options: Any) -> Iterator[Any]:
        if not _C._is_dry():
            yield from original(url, rank, world_size, **options)
            return
        launched_rank, launched_size = settings.launched_as()
        yield (
            torch._C._distributed_c10d.HashStore(),
            launched_rank if rank < 0 else rank,
            launched_size if world_size < 0 else world_size,
        )

    return meet


def register() -> None:
    """Make "neuron" a backend of torch.distributed and the default of its tensors."""
    if dist.is_available() and not hasattr(dist.Backend, "NEURON"):
        dist.Backend.register_backend("neuron", _create, extended_api=True, devices=["neuron"])
        c10d: Any = dist.distributed_c10d
        c10d.rendezvous = _rendezvous_when_dry(c10d.rendezvous)

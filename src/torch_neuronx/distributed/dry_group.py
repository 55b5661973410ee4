"""A process group of a dry run: this process is rank r of N, the others do not exist.

Collectives take modelled time on a queue of their own, which waits for the stream that calls them;
what waits for the collective waits on that queue. Tensors of results are as they were.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, cast

import torch
import torch.distributed as dist
from torch.futures import Future
from torch.utils._pytree import tree_leaves

from torch_neuronx import _C
from torch_neuronx.distributed.group import NeuronGroup

# Ids of modelled queues that no stream has.
_FIRST_QUEUE = 1 << 20
_queues = itertools.count(_FIRST_QUEUE)


class _Work(dist.Work):
    """A collective in flight on the modelled clock."""

    def __init__(self, result: Any, device: int | None, end_ns: int) -> None:
        super().__init__()
        self._device = device
        self._end_ns = end_ns
        self._future: Future[Any] = Future()
        self._future.set_result(result)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """The current stream goes on when the collective is done."""
        del timeout
        if self._device is not None:
            stream = torch._C._accelerator_getStream(self._device)
            _C._clock_wait(self._device, stream.stream_id, self._end_ns)
        return True

    def is_completed(self) -> bool:
        """Always: there is nothing that could still run."""
        return True

    def is_success(self) -> bool:
        """Always."""
        return True

    def get_future(self) -> Future[Any]:
        """The results."""
        return self._future

    def result(self) -> list[torch.Tensor]:
        """The results."""
        return cast(list[torch.Tensor], self._future.value())


def _bytes(values: Any) -> int:
    return sum(
        leaf.numel() * leaf.element_size()
        for leaf in tree_leaves(values)
        if isinstance(leaf, torch.Tensor)
    )


class DryProcessGroup(NeuronGroup):
    """A group of which only this process runs.

    Args:
        rank: of this process in the group.
        size: ranks of the group.
        ranks: their global ranks, which say where they sit; None for all.
    """

    def __init__(self, rank: int, size: int, ranks: Sequence[int] | None = None) -> None:
        super().__init__(rank, size)
        self._queue = next(_queues)
        self._stride = stride_of(ranks)

    def issue(self, name: str, num_bytes: int, result: Any) -> dist.Work:
        """Advance the clock by one collective over a buffer of `num_bytes`."""
        device = next(
            (
                leaf.device.index
                for leaf in tree_leaves(result)
                if isinstance(leaf, torch.Tensor) and leaf.device.type == "neuron"
            ),
            None,
        )
        if device is None:
            return _Work(result, None, 0)
        stream = torch._C._accelerator_getStream(device)
        _C._clock_wait(device, self._queue, _C._clock_queue_now(device, stream.stream_id))
        _C._observe(
            f"c10d::neuron_{name}",
            [num_bytes, self._size, self._stride],
            device,
            self._queue,
        )
        return _Work(result, device, _C._clock_queue_now(device, self._queue))

    def barrier(self, opts: Any = None) -> dist.Work:
        """Nobody else to wait for."""
        del opts
        return _Work([], None, 0)

    def monitored_barrier(self, *args: Any, **kwargs: Any) -> None:
        """Nobody else to wait for."""


# c10d's method -> the collective, and which argument is the whole buffer (all-gather: the output).
_METHODS: dict[str, tuple[str, int]] = {
    "allreduce": ("all_reduce", 0),
    "allreduce_coalesced": ("all_reduce", 0),
    "allgather": ("all_gather", 0),
    "allgather_coalesced": ("all_gather", 0),
    "all_gather_single": ("all_gather", 0),
    "_allgather_base": ("all_gather", 0),
    "allgather_into_tensor_coalesced": ("all_gather", 0),
    "all_gather_single_coalesced": ("all_gather", 0),
    "reduce_scatter": ("reduce_scatter", 1),
    "reduce_scatter_single": ("reduce_scatter", 1),
    "_reduce_scatter_base": ("reduce_scatter", 1),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter", 1),
    "reduce_scatter_single_coalesced": ("reduce_scatter", 1),
    "alltoall": ("all_to_all", 1),
    "alltoall_base": ("all_to_all", 1),
    "all_to_all_single": ("all_to_all", 1),
    "broadcast": ("broadcast", 0),
    "reduce": ("reduce", 0),
    "gather": ("gather", 1),
    "scatter": ("scatter", 0),
    "send": ("send_recv", 0),
    "recv": ("send_recv", 0),
    "recv_anysource": ("send_recv", 0),
}


def observe(method: str, arguments: tuple[Any, ...], size: int, stride: int) -> None:
    """File a collective that ran by itself, such as the host driver's, on the modelled clock."""
    collective, buffer = _METHODS[method]
    leaves = [leaf for leaf in tree_leaves(arguments) if isinstance(leaf, torch.Tensor)]
    device = next((leaf.device.index for leaf in leaves if leaf.device.type == "neuron"), None)
    if device is not None and _C._observer_on():
        stream = torch._C._accelerator_getStream(device)
        numbers = [_bytes(arguments[buffer]), size, stride]
        _C._observe(f"c10d::neuron_{collective}", numbers, device, stream.stream_id)


def stride_of(ranks: Sequence[int] | None) -> int:
    """The distance between neighbours of a group, which says where its ranks sit."""
    return max(1, ranks[1] - ranks[0]) if ranks is not None and len(ranks) > 1 else 1


def _method(collective: str, buffer: int) -> Callable[..., dist.Work]:
    def call(self: DryProcessGroup, *arguments: Any, **options: Any) -> dist.Work:
        del options
        return self.issue(collective, _bytes(arguments[buffer]), arguments[0])

    call.__name__ = collective
    call.__doc__ = f"A modelled {collective}."
    return call


for _name, (_collective, _buffer) in _METHODS.items():
    setattr(DryProcessGroup, _name, _method(_collective, _buffer))

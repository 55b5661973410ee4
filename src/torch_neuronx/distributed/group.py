"""What every process group of the backend "neuron" answers about itself."""

from __future__ import annotations

import torch.distributed as dist


class NeuronGroup(dist.ProcessGroup):
    """Rank, size and names; how a collective runs is for the subclass.

    Args:
        rank: of this process in the group.
        size: number of ranks.
    """

    def __init__(self, rank: int, size: int) -> None:
        super().__init__(rank, size)  # type: ignore[call-arg, arg-type]  # the stub lacks this one
        self._rank = rank
        self._size = size

    def size(self) -> int:
        """Number of ranks."""
        return self._size

    def rank(self) -> int:
        """The rank that this process is, or stands for."""
        return self._rank

    @property
    def group_name(self) -> str:  # type: ignore[override]
        """The name that functional collectives find the group by."""
        return dist.distributed_c10d._world.pg_names[self]

    def getBackendName(self) -> str:  # noqa: N802  # c10d's name
        """Always "neuron"."""
        return "neuron"

"""`nki.collectives`: exchange between ranks from inside a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from nki.errors import NkiValidationError
from nki.isa.operands import emit, tile
from nki.program import operators
from nki.program.builder import current
from nki.program.enums import Engine
from nki.program.ir import NkiInstruction
from nki.program.nki_object import NkiObject
from nki.program.registers import NkiScalar
from nki.program.tensor import NkiTensor


@dataclass
class ReplicaGroup(NkiObject):
    """Disjoint lists of ranks that exchange among themselves."""

    replica_groups: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        seen = [rank for group in self.replica_groups for rank in group]
        if len(seen) != len(set(seen)):
            raise NkiValidationError(
                f"ReplicaGroup {self.replica_groups}: a rank is in two groups. Make them disjoint."
            )


def _groups(group: ReplicaGroup | Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    lists = group.replica_groups if isinstance(group, ReplicaGroup) else group
    return tuple(tuple(int(rank) for rank in ranks) for ranks in lists)


def _emit(
    kind: str,
    srcs: Sequence[NkiTensor],
    dsts: Sequence[NkiTensor],
    groups: tuple[tuple[int, ...], ...],
    name: str | None,
    *,
    metadata: NkiTensor | None = None,
    **attributes: Any,
) -> NkiInstruction:
    sources = [tile(src, "srcs") for src in srcs]
    targets = [tile(dst, "dsts") for dst in dsts]
    places = {tensor.on_chip for tensor in (*sources, *targets)}
    if len(places) > 1:
        raise NkiValidationError(
            f"{kind}: sources and destinations mix HBM and SBUF; use one memory for all."
        )
    if True in places and len(sources) > 1 and kind not in _BY_CHANNEL:
        raise NkiValidationError(
            f"{kind} of {len(sources)} SBUF tensors at once; coalescing works only in HBM. "
            "Call it once for each tensor."
        )
    return emit(
        "collective",
        Engine.dma,
        {f"dst{position}": target for position, target in enumerate(targets)},
        {"srcs": sources, "metadata": metadata},
        {"kind": kind, "groups": groups, **attributes},
        name=name,
    )


_BY_CHANNEL = ("collective_permute_implicit", "collective_permute_implicit_reduce")


def _check_dim(kind: str, dim: int, allowed: tuple[int, ...]) -> int:
    if dim not in allowed:
        raise NkiValidationError(f"{kind}: collective_dim={dim}; possible: {allowed}.")
    return dim


def all_reduce(
    srcs: Sequence[NkiTensor],
    dsts: Sequence[NkiTensor],
    replica_group: ReplicaGroup,
    op: Any,
    priority: int | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """dsts := srcs reduced over the group, on every rank."""
    return _emit(
        "all_reduce",
        srcs,
        dsts,
        _groups(replica_group),
        name,
        op=operators.reduction(op).name,
        priority=priority,
    )


def all_gather(
    srcs: Sequence[NkiTensor],
    dsts: Sequence[NkiTensor],
    replica_group: ReplicaGroup,
    collective_dim: int,
    priority: int | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """dsts := the srcs of all ranks, one after the other along collective_dim."""
    allowed = (0, 1) if srcs and srcs[0].on_chip else (0,)
    return _emit(
        "all_gather",
        srcs,
        dsts,
        _groups(replica_group),
        name,
        dim=_check_dim("all_gather", collective_dim, allowed),
        priority=priority,
    )


def reduce_scatter(
    srcs: Sequence[NkiTensor],
    dsts: Sequence[NkiTensor],
    replica_group: ReplicaGroup,
    collective_dim: int,
    op: Any,
    priority: int | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """dsts := this rank's piece of the reduced srcs."""
    return _emit(
        "reduce_scatter",
        srcs,
        dsts,
        _groups(replica_group),
        name,
        dim=_check_dim("reduce_scatter", collective_dim, (0,)),
        op=operators.reduction(op).name,
        priority=priority,
    )


def all_to_all(
    srcs: Sequence[NkiTensor],
    dsts: Sequence[NkiTensor],
    replica_group: ReplicaGroup,
    collective_dim: int,
    priority: int | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """dsts := piece i of every rank's src, for rank i."""
    return _emit(
        "all_to_all",
        srcs,
        dsts,
        _groups(replica_group),
        name,
        dim=_check_dim("all_to_all", collective_dim, (0,)),
        priority=priority,
    )


def all_gather_v(
    srcs: Sequence[NkiTensor],
    dsts: Sequence[NkiTensor],
    replica_group: ReplicaGroup,
    metadata_tensor: NkiTensor,
    recv_counts_known: bool = False,
    has_rdispls: bool = False,
    priority: int | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """all_gather of pieces whose lengths are known at run time."""
    if has_rdispls:
        raise NkiValidationError("all_gather_v: has_rdispls is not supported. Leave it False.")
    return _emit(
        "all_gather_v",
        srcs,
        dsts,
        _groups(replica_group),
        name,
        metadata=tile(metadata_tensor, "metadata_tensor"),
        recv_counts_known=recv_counts_known,
        has_rdispls=has_rdispls,
        priority=priority,
    )


def all_to_all_v(
    srcs: Sequence[NkiTensor],
    dsts: Sequence[NkiTensor],
    replica_group: ReplicaGroup,
    metadata_tensor: NkiTensor,
    recv_counts_known: bool = False,
    has_rdispls: bool = False,
    priority: int | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """all_to_all of pieces whose lengths are known at run time."""
    return _emit(
        "all_to_all_v",
        srcs,
        dsts,
        _groups(replica_group),
        name,
        metadata=tile(metadata_tensor, "metadata_tensor"),
        recv_counts_known=recv_counts_known,
        has_rdispls=has_rdispls,
        priority=priority,
    )


def collective_permute(
    srcs: Sequence[NkiTensor],
    dsts: Sequence[NkiTensor],
    source_target_pairs: Sequence[tuple[int, int]],
    priority: int | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """Send along explicit (source, target) pairs."""
    pairs = tuple((int(source), int(target)) for source, target in source_target_pairs)
    ranks = tuple(sorted({rank for pair in pairs for rank in pair}))
    return _emit("collective_permute", srcs, dsts, (ranks,), name, pairs=pairs, priority=priority)


def _ring(group: ReplicaGroup | Sequence[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    return tuple(
        (ranks[i], ranks[(i + 1) % len(ranks)])
        for ranks in _groups(group)
        for i in range(len(ranks))
    )


def _flat(by_channel: Sequence[Sequence[NkiTensor]]) -> list[NkiTensor]:
    return [tensor for channel in by_channel for tensor in channel]


def collective_permute_implicit(
    srcs_by_channel: Sequence[Sequence[NkiTensor]],
    dsts_by_channel: Sequence[Sequence[NkiTensor]],
    replica_group: ReplicaGroup,
    channel_ids: Sequence[int] = (0,),
    priority: int | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """One step around the ring of each group."""
    return _emit(
        "collective_permute_implicit",
        _flat(srcs_by_channel),
        _flat(dsts_by_channel),
        _groups(replica_group),
        name,
        pairs=_ring(replica_group),
        channels=tuple(channel_ids),
        priority=priority,
    )


def collective_permute_implicit_reduce(
    srcs0_by_channel: Sequence[Sequence[NkiTensor]],
    srcs1_by_channel: Sequence[Sequence[NkiTensor]],
    dsts_by_channel: Sequence[Sequence[NkiTensor]],
    replica_group: ReplicaGroup,
    op: Any,
    channel_ids: Sequence[int] = (0,),
    priority: int | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """One step around the ring with op(src0, src1)."""
    return _emit(
        "collective_permute_implicit_reduce",
        [*_flat(srcs0_by_channel), *_flat(srcs1_by_channel)],
        _flat(dsts_by_channel),
        _groups(replica_group),
        name,
        pairs=_ring(replica_group),
        op=operators.reduction(op).name,
        channels=tuple(channel_ids),
        priority=priority,
    )


def rank_id(name: str | None = None) -> NkiScalar:
    """This rank, as a register."""
    register = current().new_register()
    emit("rank_id", Engine.sync, {}, {}, {"register": register, "groups": ()}, name=name)
    return register


def collective_permute_implicit_current_processing_rank_id(
    iteration_id: int,
    replica_group: ReplicaGroup,
    channel_id: int = 0,
    name: str | None = None,
) -> NkiScalar:
    """The rank whose data is here after iteration_id ring steps, as a register."""
    del channel_id  # all channels of a ring turn alike
    groups = _groups(replica_group)
    size = len(groups[0])
    here = rank_id(name)
    return (here % size - int(iteration_id) % size + size) % size + (here // size) * size

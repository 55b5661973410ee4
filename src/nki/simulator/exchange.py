"""Where cores meet: barriers, pairwise exchange, collectives."""

from __future__ import annotations

from typing import Any

import numpy as np

from nki import dtypes
from nki.program.ir import NkiInstruction
from nki.simulator import alu
from nki.simulator.memory import Array, Machine

MEETING = frozenset(("core_barrier", "sendrecv", "collective"))

Party = tuple[Machine, NkiInstruction]


def can_meet(waiting: dict[int, NkiInstruction], num_cores: int) -> list[int]:
    """Cores that can go on together, the first such group; empty if there is none."""
    for core, instruction in sorted(waiting.items()):
        group = _group(core, instruction, num_cores)
        if all(
            other in waiting and _matches(instruction, waiting[other], core, other)
            for other in group
        ):
            return group
    return []


def _group(core: int, instruction: NkiInstruction, num_cores: int) -> list[int]:
    if instruction.opcode == "sendrecv":
        return sorted(
            {core, instruction.attributes["send_to_rank"], instruction.attributes["recv_from_rank"]}
        )
    if instruction.opcode == "core_barrier":
        return [other for other in instruction.attributes["cores"] if other < num_cores]
    for ranks in instruction.attributes["groups"]:
        if core in ranks:
            return [rank for rank in ranks if rank < num_cores]
    return [core]


def _matches(first: NkiInstruction, second: NkiInstruction, core: int, other: int) -> bool:
    if first.opcode != second.opcode:
        return False
    if first.opcode == "sendrecv":
        return bool(first.attributes["pipe_id"] == second.attributes["pipe_id"])
    if first.opcode == "collective":
        return bool(first.attributes["kind"] == second.attributes["kind"])
    return core in second.attributes["cores"] and other in first.attributes["cores"]


def exchange(parties: dict[int, Party]) -> None:
    """Do what the meeting instructions do, for all of them at once."""
    instruction = next(iter(parties.values()))[1]
    if instruction.opcode == "core_barrier":
        return
    if instruction.opcode == "sendrecv":
        sent = {
            core: machine.raw(item.inputs["src"]).copy()
            for core, (machine, item) in parties.items()
        }
        for machine, item in parties.values():
            machine.store(item.outputs["dst"], sent[item.attributes["recv_from_rank"]])
        return
    _COLLECTIVES[instruction.attributes["kind"]](parties)


def _sources(parties: dict[int, Party], position: int) -> dict[int, Array]:
    return {
        core: machine.raw(item.inputs["srcs"][position]).copy()
        for core, (machine, item) in sorted(parties.items())
    }


def _reduced(parties: dict[int, Party], position: int) -> Array:
    sources = _sources(parties, position)
    item = next(iter(parties.values()))[1]
    dtype = item.inputs["srcs"][position].dtype
    total: Any = None
    for values in sources.values():
        wide = dtypes.to_float32(values, dtype)
        total = wide if total is None else alu.apply(item.attributes["op"], total, wide)
    return np.asarray(total)


def _each(parties: dict[int, Party]) -> range:
    return range(len(next(iter(parties.values()))[1].inputs["srcs"]))


def _all_reduce(parties: dict[int, Party]) -> None:
    for position in _each(parties):
        total = _reduced(parties, position)
        for machine, item in parties.values():
            machine.store(item.outputs[f"dst{position}"], total)


def _all_gather(parties: dict[int, Party]) -> None:
    for position in _each(parties):
        parts = list(_sources(parties, position).values())
        for machine, item in parties.values():
            joined = np.concatenate(parts, axis=item.attributes["dim"])
            machine.store(item.outputs[f"dst{position}"], joined)


def _reduce_scatter(parties: dict[int, Party]) -> None:
    for position in _each(parties):
        total = _reduced(parties, position)
        pieces: list[Array] | None = None
        for place, core in enumerate(sorted(parties)):
            machine, item = parties[core]
            pieces = np.split(total, len(parties), axis=item.attributes["dim"])
            machine.store(item.outputs[f"dst{position}"], pieces[place])


def _all_to_all(parties: dict[int, Party]) -> None:
    for position in _each(parties):
        sources = _sources(parties, position)
        order = sorted(parties)
        for place, core in enumerate(order):
            machine, item = parties[core]
            dim = item.attributes["dim"]
            received = [np.split(sources[other], len(order), axis=dim)[place] for other in order]
            machine.store(item.outputs[f"dst{position}"], np.concatenate(received, axis=dim))


def _permute(parties: dict[int, Party]) -> None:
    for position in _each(parties):
        sources = _sources(parties, position)
        for core, (machine, item) in parties.items():
            for source, target in item.attributes["pairs"]:
                if target == core and source in sources:
                    machine.store(item.outputs[f"dst{position}"], sources[source])


def _permute_reduce(parties: dict[int, Party]) -> None:
    half = len(next(iter(parties.values()))[1].inputs["srcs"]) // 2
    for position in range(half):
        mine = _sources(parties, position)
        other = _sources(parties, half + position)
        for core, (machine, item) in parties.items():
            dtype = item.inputs["srcs"][position].dtype
            for source, target in item.attributes["pairs"]:
                if target == core and source in mine:
                    total = alu.apply(
                        item.attributes["op"],
                        dtypes.to_float32(mine[source], dtype),
                        dtypes.to_float32(other[source], dtype),
                    )
                    machine.store(item.outputs[f"dst{position}"], total)


def _metadata(machine: Machine, item: NkiInstruction) -> Array:
    table = machine.raw(item.inputs["metadata"])
    return table.reshape(-1, table.shape[-1]).astype(np.int64)


def _gather_v(parties: dict[int, Party]) -> None:
    """Metadata rows: send_count, send_displ, recv_counts; each rank's piece in order."""
    pieces: list[Array] = []
    for core in sorted(parties):
        machine, item = parties[core]
        table = _metadata(machine, item)
        count, start = int(table[0, 0]), int(table[1, 0])
        pieces.append(machine.raw(item.inputs["srcs"][0]).reshape(-1)[start : start + count].copy())
    joined = np.concatenate(pieces)
    for machine, item in parties.values():
        machine.array(item.outputs["dst0"]).reshape(-1)[: joined.size] = joined


def _to_all_v(parties: dict[int, Party]) -> None:
    """Metadata rows: send_counts, send_displs, recv_counts, [recv_displs], one column a rank."""
    order = sorted(parties)
    tables = {core: _metadata(*parties[core]) for core in order}
    data = {
        core: parties[core][0].raw(parties[core][1].inputs["srcs"][0]).reshape(-1).copy()
        for core in order
    }
    for place, core in enumerate(order):
        machine, item = parties[core]
        target = machine.array(item.outputs["dst0"]).reshape(-1)
        at = 0
        for sender_place, sender in enumerate(order):
            table = tables[sender]
            count, start = int(table[0, place]), int(table[1, place])
            if item.attributes["has_rdispls"]:
                at = int(tables[core][3, sender_place])
            target[at : at + count] = data[sender][start : start + count]
            at += count


_COLLECTIVES = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "collective_permute": _permute,
    "collective_permute_implicit": _permute,
    "collective_permute_implicit_reduce": _permute_reduce,
    "all_gather_v": _gather_v,
    "all_to_all_v": _to_all_v,
}

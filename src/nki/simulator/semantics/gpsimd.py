"""GpSimd: index patterns, gathers, partition reductions."""

from __future__ import annotations

import numpy as np

from nki.program.ir import NkiInstruction
from nki.program.operators import OPERATORS
from nki.simulator import alu
from nki.simulator.memory import Array, Machine
from nki.simulator.semantics.table import means

_LANES = 16  # partitions of one GpSimd core


def affine(machine: Machine, instruction: NkiInstruction, partitions: int) -> Array:
    """offset + p * channel_multiplier + the pattern's steps, as int32 [P, N]."""
    steps = np.zeros((), np.int64)
    for step, count in instruction.attributes["pattern"]:
        steps = steps[..., None] + np.arange(count, dtype=np.int64) * step
    rows = np.arange(partitions, dtype=np.int64) * instruction.attributes["channel_multiplier"]
    offset = machine.value(instruction.inputs["offset"])
    return np.asarray((offset + rows[:, None] + steps.reshape(1, -1)).astype(np.int32))


@means("iota")
def _iota(machine: Machine, instruction: NkiInstruction) -> None:
    dst = instruction.outputs["dst"]
    machine.store(dst, affine(machine, instruction, dst.shape[0]))


@means("affine_select")
def _affine_select(machine: Machine, instruction: NkiInstruction) -> None:
    dst, source = instruction.outputs["dst"], instruction.inputs["on_true_tile"]
    place = affine(machine, instruction, source.shape[0])
    keep = alu.apply(instruction.attributes["cmp_op"], place, 0) != 0
    keep = keep.reshape(source.shape)
    values = machine.load(source)
    machine.store(dst, np.where(keep, values, np.float32(instruction.attributes["on_false_value"])))


@means("tensor_partition_reduce")
def _tensor_partition_reduce(machine: Machine, instruction: NkiInstruction) -> None:
    data, op = instruction.inputs["data"], instruction.attributes["op"]
    if OPERATORS[op].is_bitvec:
        result = alu.reduce_bits(op, machine.raw(data), (0,))
    else:
        result = alu.reduce(op, machine.load(data), (0,))
    machine.store(instruction.outputs["dst"], result)


@means("nc_n_gather")
def _nc_n_gather(machine: Machine, instruction: NkiInstruction) -> None:
    data, indices = instruction.inputs["data"], instruction.inputs["indices"]
    rows = machine.raw(data).reshape(data.shape[0], -1)
    places = machine.raw(indices).reshape(indices.shape[0], -1).astype(np.int64)
    inside = (places >= 0) & (places < rows.shape[1])
    picked = np.take_along_axis(rows, np.where(inside, places, 0), axis=1)
    machine.store(instruction.outputs["dst"], picked)


@means("local_gather")
def _local_gather(machine: Machine, instruction: NkiInstruction) -> None:
    dst, src = instruction.outputs["dst"], instruction.inputs["src_buffer"]
    index = instruction.inputs["index"]
    width = instruction.attributes["num_elem_per_idx"]
    valid = instruction.attributes["num_valid_indices"]
    rows = machine.raw(src).reshape(src.shape[0], -1)
    places = machine.raw(index).reshape(index.shape[0], -1).astype(np.int64)
    out = machine.raw(dst).reshape(dst.shape[0], -1).copy()
    for start in range(0, src.shape[0], _LANES):
        order = places[start : start + _LANES].T.reshape(-1)
        if valid is not None:
            order = order[: int(valid)]
        columns = (order[:, None] * width + np.arange(width)).reshape(-1)
        columns = columns[: out.shape[1]]
        inside = (columns >= 0) & (columns < rows.shape[1])
        block = rows[start : start + _LANES][:, np.where(inside, columns, 0)]
        out[start : start + _LANES, : block.shape[1]] = block
    machine.store(dst, out)


@means("nonzero_with_count")
def _nonzero_with_count(machine: Machine, instruction: NkiInstruction) -> None:
    dst, src = instruction.outputs["dst"], instruction.inputs["src"]
    rows = machine.raw(src).reshape(src.shape[0], -1)
    out = machine.raw(dst).reshape(dst.shape[0], -1).copy()
    offset = int(machine.value(instruction.inputs["index_offset"]))
    for start in range(0, rows.shape[0], _LANES):
        hits = np.nonzero(rows[start] != 0)[0]
        out[start, :-1] = instruction.attributes["padding_val"]
        out[start, : hits.size] = hits + offset
        out[start, -1] = hits.size
    machine.store(dst, out)


def _snake(values: Array, n: int) -> Array:
    """The first n values of 16 partitions: down the partitions, then the next column."""
    return values.T.reshape(-1)[:n]


@means("topk")
def _topk(machine: Machine, instruction: NkiInstruction) -> None:
    src, n = instruction.inputs["src"], instruction.attributes["n"]
    val_dst, idx_dst = instruction.outputs["val_dst"], instruction.outputs["idx_dst"]
    rows = machine.load(src).reshape(src.shape[0], -1)
    values = machine.load(val_dst).reshape(val_dst.shape[0], -1).copy()
    places = machine.raw(idx_dst).reshape(idx_dst.shape[0], -1).copy()
    for start in range(0, rows.shape[0], _LANES):
        sequence = _snake(rows[start : start + _LANES], n)
        k = values.shape[1] * _LANES if val_dst.shape[0] >= _LANES else values.shape[1]
        k = min(k, n)
        order = np.argsort(sequence, kind="stable")[-k:]
        for slot, place in enumerate(order):
            lane, column = slot % _LANES, slot // _LANES
            if val_dst.shape[0] < _LANES:
                lane, column = 0, slot
            values[start + lane, column] = sequence[place]
            places[start + lane, column] = place
    machine.store(val_dst, values)
    machine.store(idx_dst, places)


@means("sequence_bounds")
def _sequence_bounds(machine: Machine, instruction: NkiInstruction) -> None:
    ids = machine.load(instruction.inputs["segment_ids"]).reshape(-1)
    n = ids.size
    out = np.empty((1, 2, n), np.float32)
    edges = np.nonzero(np.diff(ids))[0] + 1
    starts = np.concatenate([[0], edges])
    ends = np.concatenate([edges, [n]])
    for start, end in zip(starts, ends, strict=True):
        padding = ids[start] == 0
        out[0, 0, start:end] = n if padding else start
        out[0, 1, start:end] = -1 if padding else end
    machine.store(instruction.outputs["dst"], out)

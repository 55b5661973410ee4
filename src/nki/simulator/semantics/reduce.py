"""Reductions, scans, statistics, selections and searches along the free dimension."""

from __future__ import annotations

import numpy as np

from nki.program.ir import NkiInstruction
from nki.program.operators import OPERATORS
from nki.simulator import alu
from nki.simulator.memory import Array, Machine
from nki.simulator.semantics.accumulator import accumulate
from nki.simulator.semantics.table import means
from nki.simulator.semantics.vector import column


@means("tensor_reduce")
def _tensor_reduce(machine: Machine, instruction: NkiInstruction) -> None:
    data, op = instruction.inputs["data"], instruction.attributes["op"]
    axes = instruction.attributes["axes"]
    if OPERATORS[op].is_bitvec:
        result = alu.reduce_bits(op, machine.raw(data), axes)
    else:
        result = alu.reduce(op, machine.load(data), axes)
        if instruction.attributes["negate"]:
            result = -result
    machine.store(instruction.outputs["dst"], result)


@means("tensor_scalar_reduce")
def _tensor_scalar_reduce(machine: Machine, instruction: NkiInstruction) -> None:
    data = instruction.inputs["data"]
    operand = column(machine, instruction.inputs["operand0"], data)
    values = alu.apply(
        instruction.attributes["op0"],
        machine.load(data),
        operand,
        reverse=instruction.attributes["reverse0"],
    )
    accumulate(
        machine,
        instruction,
        values,
        instruction.attributes["reduce_op"],
        init=instruction.inputs.get("reduce_init"),
    )
    machine.store(instruction.outputs["dst"], values)


def _rows(values: Array) -> Array:
    return values.reshape(values.shape[0], -1)


@means("tensor_scalar_cumulative")
def _tensor_scalar_cumulative(machine: Machine, instruction: NkiInstruction) -> None:
    src, attributes = instruction.inputs["src"], instruction.attributes
    values = alu.apply(
        attributes["op0"], machine.load(src), column(machine, instruction.inputs["imm0"], src)
    )
    rows = _rows(np.asarray(values))
    op = attributes["op1"]
    start, count = src.partition_start, rows.shape[0]
    register = machine.accumulators[instruction.engine][start : start + count]
    command = attributes["reduce_cmd"].name
    if command in ("reset", "reset_reduce"):
        register[:] = alu.IDENTITY[op]
    elif command == "load_reduce":
        first = machine.load(instruction.inputs.get("imm1", 0.0))
        register[:] = np.asarray(first).reshape(-1)
    out = np.empty_like(rows)
    state = register.copy()
    for i in range(rows.shape[1]):
        state = alu.apply(op, state, rows[:, i])
        out[:, i] = state
    register[:] = state
    machine.store(instruction.outputs["dst"], out)


@means("tensor_tensor_scan")
def _tensor_tensor_scan(machine: Machine, instruction: NkiInstruction) -> None:
    attributes = instruction.attributes
    data0 = instruction.inputs["data0"]
    first = np.ascontiguousarray(_rows(machine.load(data0)).T)
    second = np.ascontiguousarray(_rows(machine.load(instruction.inputs["data1"])).T)
    initial = np.asarray(machine.load(instruction.inputs["initial"]), np.float32).reshape(-1)
    state = np.broadcast_to(initial, (data0.shape[0],)).astype(np.float32)
    out = np.empty_like(first)
    op0, op1 = alu.ARITHMETIC[attributes["op0"]], alu.ARITHMETIC[attributes["op1"]]
    flip0, flip1 = attributes["reverse0"], attributes["reverse1"]
    with np.errstate(all="ignore"):
        for i in range(first.shape[0]):
            inner = op0(state, first[i]) if flip0 else op0(first[i], state)
            state = op1(second[i], inner) if flip1 else op1(inner, second[i])
            out[i] = state
    machine.store(instruction.outputs["dst"], np.ascontiguousarray(out.T))


@means("bn_stats")
def _bn_stats(machine: Machine, instruction: NkiInstruction) -> None:
    rows = _rows(machine.load(instruction.inputs["data"]))
    out = np.zeros((rows.shape[0], 6), np.float32)
    for half in (0, 1):
        part = rows[:, half::2]
        count = part.shape[1]
        out[:, 3 * half] = count
        if count:
            mean = part.mean(axis=1, dtype=np.float32)
            out[:, 3 * half + 1] = mean
            out[:, 3 * half + 2] = ((part - mean[:, None]) ** 2).sum(axis=1, dtype=np.float32)
    machine.store(instruction.outputs["dst"], out)


@means("bn_aggr")
def _bn_aggr(machine: Machine, instruction: NkiInstruction) -> None:
    rows = _rows(machine.load(instruction.inputs["data"])).reshape(
        instruction.inputs["data"].shape[0], -1, 3
    )
    count, mean, second = rows[..., 0], rows[..., 1], rows[..., 2]
    total = count.sum(axis=1)
    with np.errstate(all="ignore"):
        center = (count * mean).sum(axis=1) / total
        spread = second.sum(axis=1) + (count * (mean - center[:, None]) ** 2).sum(axis=1)
        out = np.stack([center, spread / total], axis=1)
    machine.store(instruction.outputs["dst"], out.astype(np.float32))


@means("range_select")
def _range_select(machine: Machine, instruction: NkiInstruction) -> None:
    source, attributes = instruction.inputs["on_true_tile"], instruction.attributes
    rows = _rows(machine.load(source))
    index = attributes["range_start"] + np.arange(rows.shape[1], dtype=np.float32)[None, :]
    low = machine.load(instruction.inputs["bound0"]).reshape(-1, 1)
    high = machine.load(instruction.inputs["bound1"]).reshape(-1, 1)
    keep = (alu.apply(attributes["comp_op0"], index, low) != 0) & (
        alu.apply(attributes["comp_op1"], index, high) != 0
    )
    values = np.where(keep, rows, np.float32(attributes["on_false_value"]))
    accumulate(machine, instruction, values, attributes["reduce_op"])
    machine.store(instruction.outputs["dst"], values)


@means("select_reduce")
def _select_reduce(machine: Machine, instruction: NkiInstruction) -> None:
    on_true = instruction.inputs["on_true"]
    chosen = machine.raw(instruction.inputs["predicate"]).reshape(on_true.shape) != 0
    if instruction.attributes["reverse_pred"]:
        chosen = ~chosen
    other = column(machine, instruction.inputs["on_false"], on_true)
    values = np.where(chosen, machine.load(on_true), other).astype(np.float32)
    accumulate(machine, instruction, values, instruction.attributes["reduce_op"])
    machine.store(instruction.outputs["dst"], values)


@means("max8")
def _max8(machine: Machine, instruction: NkiInstruction) -> None:
    rows = _rows(machine.load(instruction.inputs["src"]))
    top = -np.partition(-rows, 7, axis=1)[:, :8]
    machine.store(instruction.outputs["dst"], -np.sort(-top, axis=1))


def _matches(rows: Array, vals: Array, order: range) -> Array:
    """For each value the place of its first match not yet taken by an equal value, or -1."""
    found = np.full(vals.shape, -1, np.int64)
    taken = np.zeros(rows.shape, np.bool_)
    lines = np.arange(rows.shape[0])
    for slot in order:
        hit = (rows == vals[:, slot : slot + 1]) & ~taken
        place = hit.argmax(axis=1)
        there = hit[lines, place]
        found[there, slot] = place[there]
        taken[lines[there], place[there]] = True
    return found


@means("nc_find_index8")
def _nc_find_index8(machine: Machine, instruction: NkiInstruction) -> None:
    rows = _rows(machine.load(instruction.inputs["data"]))
    vals = _rows(machine.load(instruction.inputs["vals"]))
    dst = instruction.outputs["dst"]
    found = _matches(rows, vals, range(8))
    machine.store(dst, _index_pattern(found, dst.dtype))


def _index_pattern(found: Array, dtype: str) -> Array:
    """Indices in an unsigned type; all ones where nothing matched."""
    kinds = {"uint16": np.uint16, "uint32": np.uint32, "int32": np.int32}
    return found.astype(np.int64).astype(kinds[dtype])


@means("nc_match_replace8")
def _nc_match_replace8(machine: Machine, instruction: NkiInstruction) -> None:
    data = instruction.inputs["data"]
    rows = _rows(machine.load(data))
    vals = _rows(machine.load(instruction.inputs["vals"]))
    found = _matches(rows, vals, range(7, -1, -1))
    result = rows.copy()
    lines, slots = np.nonzero(found >= 0)
    result[lines, found[lines, slots]] = instruction.attributes["imm"]
    index = instruction.outputs.get("dst_idx")
    if index is not None:
        machine.store(index, _index_pattern(found, index.dtype))
    machine.store(instruction.outputs["dst"], result)

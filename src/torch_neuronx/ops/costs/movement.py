"""Copies, casts, joins, gathers, scatters, and what crosses to the host."""

from __future__ import annotations

import math

from neuron_chip import Work, counts
from torch_neuronx.ops.costs.call import Call, Machine, Tensor
from torch_neuronx.ops.costs.elementwise import fused
from torch_neuronx.ops.costs.registry import rule

# Below this length a piece costs a descriptor of its own, and the tensor engine transposes faster.
_SHORT_PIECE_BYTES = 64


def _move(source: Tensor, out: Tensor, machine: Machine) -> Work:
    """A copy between two places in HBM, a transpose where the order of the dims changes."""
    piece = min(source.contiguous_elements, out.contiguous_elements) * source.row.bytes
    if piece >= min(_SHORT_PIECE_BYTES, out.num_bytes):
        return counts.copy(out.num_bytes, contiguous_bytes=max(1.0, piece))
    inner = next((i for i, stride in enumerate(source.strides) if stride == 1), None)
    if inner is None or inner == len(source.sizes) - 1 or source.numel == 0:
        return counts.copy(out.num_bytes, contiguous_bytes=max(1.0, piece))
    rows, columns = source.sizes[inner], source.sizes[-1]
    batch = source.numel // max(1, rows * columns)
    return batch * counts.transpose(rows, columns, chip=machine.chip, dtype=source.row.name)


@rule("copy", "_copy_from")
def _copy(call: Call, machine: Machine) -> Work:
    to, source = call.tensor(0), call.tensor(1)
    if call.op.startswith("aten::_copy_from"):
        to, source = source, to
    if not source.on_device or not to.on_device:
        waits = 1.0 if not to.on_device else 0.0
        return counts.host_copy(to.num_bytes) + Work(read_backs=waits)
    if to.dtype != source.dtype:
        return fused(("cast",), (source,), to, machine)
    return _move(source, to, machine)


@rule("_to_copy")
def _cast(call: Call, machine: Machine) -> Work:
    source, out = call.tensor(0), call.outputs[0]
    if source.dtype == out.dtype:
        return _move(source, out, machine)
    return fused(("cast",), (source,), out, machine)


@rule("clone", "contiguous", "repeat", "flip", "roll", "constant_pad_nd")
def _clone(call: Call, machine: Machine) -> Work:
    return _move(call.tensor(0), call.outputs[0], machine)


@rule("_local_scalar_dense", "equal")
def _read_back(call: Call, machine: Machine) -> Work:
    del call, machine
    return Work(read_backs=1.0)


@rule("cat", "stack", "_foreach_copy")
def _join(call: Call, machine: Machine) -> Work:
    del machine
    outputs = call.outputs
    return counts.copy(
        sum(each.num_bytes for each in outputs),
        contiguous_bytes=max(
            1.0,
            min((e.contiguous_elements * e.row.bytes for e in call.inputs if e.numel), default=1),
        ),
    )


@rule("split_with_sizes_copy", "chunk_cat", "_chunk_cat", "unbind_copy")
def _split_copy(call: Call, machine: Machine) -> Work:
    del machine
    self = call.inputs[0]
    return counts.copy(sum(each.num_bytes for each in call.outputs) or self.num_bytes)


@rule("arange", "full", "ones", "zeros", "eye", "linspace", "scalar_tensor")
def _create(call: Call, machine: Machine) -> Work:
    del machine
    return Work(hbm_write_bytes=sum(each.num_bytes for each in call.outputs))


def _rows_of(self: Tensor, index: Tensor) -> Work:
    row_bytes = math.prod(self.sizes[1:]) * self.row.bytes
    return counts.gather_rows(index.numel, row_bytes, index_bytes=index.row.bytes)


@rule("embedding", "index_select")
def _take_rows(call: Call, machine: Machine) -> Work:
    del machine
    index = call.tensor(2) if call.op.startswith("aten::index_select") else call.tensor(1)
    if call.op.startswith("aten::index_select") and call.argument(1) not in (0,):
        out = call.outputs[0]
        return counts.gather_elements(out.numel, out.row.bytes, index_bytes=0.0)
    return _rows_of(call.tensor(0), index)


@rule("index", "_unsafe_index")
def _index(call: Call, machine: Machine) -> Work:
    del machine
    out = call.outputs[0]
    indices = [each for each in call.argument(1) if isinstance(each, Tensor)]
    rows = max((each.numel for each in indices), default=1)
    return counts.gather_rows(
        rows, out.num_bytes / max(1, rows), index_bytes=sum(each.row.bytes for each in indices)
    )


@rule("gather")
def _gather(call: Call, machine: Machine) -> Work:
    del machine
    out, index = call.outputs[0], call.tensor(2)
    return counts.gather_elements(out.numel, out.row.bytes, index_bytes=index.row.bytes)


@rule("embedding_dense_backward")
def _embedding_backward(call: Call, machine: Machine) -> Work:
    del machine
    gradient, index, out = call.tensor(0), call.tensor(1), call.outputs[0]
    row_bytes = gradient.num_bytes / max(1, index.numel)
    zeroed = Work(hbm_write_bytes=out.num_bytes)
    return zeroed + counts.scatter_add_rows(index.numel, row_bytes, index_bytes=index.row.bytes)


@rule("scatter", "scatter_add", "scatter_reduce", "index_add", "index_put", "_index_put_impl")
def _scatter(call: Call, machine: Machine) -> Work:
    del machine
    indices = [each for each in call.inputs[1:] if each.row.kind in ("int", "bool")]
    source = call.inputs[-1]
    rows = max((each.numel for each in indices), default=source.numel)
    return counts.scatter_add_rows(rows, source.num_bytes / max(1, rows))

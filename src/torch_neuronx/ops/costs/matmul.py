"""Matrix products on the tensor engine."""

from __future__ import annotations

import math

from neuron_chip import Work, counts
from torch_neuronx.ops.costs.call import Call, Machine, Tensor
from torch_neuronx.ops.costs.registry import rule


def product(
    a: Tensor, m: int, k: int, n: int, machine: Machine, *, batch: int = 1, out: Tensor
) -> Work:
    """`batch` products of [m, k] by [k, n] in the dtype of `a`."""
    if 0 in (m, k, n, batch):
        return Work(hbm_write_bytes=out.num_bytes)
    return counts.matmul(
        m,
        k,
        n,
        chip=machine.chip,
        dtype=a.row.name,
        out_dtype=out.row.name,
        batch=batch,
        lnc=machine.lnc,
    )


def _addend(tensor: object) -> Work:
    return Work(hbm_read_bytes=tensor.num_bytes) if isinstance(tensor, Tensor) else Work()


@rule("mm", "_scaled_mm", "_int_mm")
def _mm(call: Call, machine: Machine) -> Work:
    a, b = call.tensor(0), call.tensor(1)
    m, k = a.sizes
    return product(a, m, k, b.sizes[1], machine, out=call.outputs[0])


@rule("addmm")
def _addmm(call: Call, machine: Machine) -> Work:
    a, b = call.tensor(1), call.tensor(2)
    m, k = a.sizes
    work = product(a, m, k, b.sizes[1], machine, out=call.outputs[0])
    return work + _addend(call.argument(0))


@rule("bmm")
def _bmm(call: Call, machine: Machine) -> Work:
    a, b = call.tensor(0), call.tensor(1)
    batch, m, k = a.sizes
    return product(a, m, k, b.sizes[2], machine, batch=batch, out=call.outputs[0])


@rule("baddbmm")
def _baddbmm(call: Call, machine: Machine) -> Work:
    a, b = call.tensor(1), call.tensor(2)
    batch, m, k = a.sizes
    work = product(a, m, k, b.sizes[2], machine, batch=batch, out=call.outputs[0])
    return work + _addend(call.argument(0))


@rule("linear")
def _linear(call: Call, machine: Machine) -> Work:
    self, weight = call.tensor(0), call.tensor(1)
    features, depth = weight.sizes
    rows = math.prod(self.sizes[:-1])
    work = product(self, rows, depth, features, machine, out=call.outputs[0])
    return work + _addend(call.argument(2))


@rule("mv", "dot", "vdot")
def _vector(call: Call, machine: Machine) -> Work:
    a = call.tensor(0)
    rows, depth = a.sizes if len(a.sizes) == 2 else (1, a.sizes[0])
    return product(a, rows, depth, 1, machine, out=call.outputs[0])

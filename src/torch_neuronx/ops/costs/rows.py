"""Reductions, softmax, norms and selections along rows."""

from __future__ import annotations

import math

from neuron_chip import Work, counts, total
from neuron_chip.counts import row_operation
from torch_neuronx.ops.costs.call import Call, Machine, Tensor
from torch_neuronx.ops.costs.elementwise import fused
from torch_neuronx.ops.costs.registry import Rule, rule


def _rows(name: str, self: Tensor, length: int, machine: Machine) -> Work:
    rows = max(1, self.numel // max(1, length))
    return row_operation(name, rows, max(1, length), chip=machine.chip, dtype=self.row.name)


def _reduction(name: str) -> Rule:
    def work(call: Call, machine: Machine) -> Work:
        self, out = call.tensor(0), call.outputs[0]
        return _rows(name, self, self.numel // max(1, out.numel), machine)

    return work


rule("sum", "mean", "amax", "amin", "nansum", "prod", "any", "all", "cumsum", "logsumexp")(
    _reduction("sum")
)
rule("argmax", "argmin", "max", "min")(_reduction("max_with_index"))


@rule("linalg_vector_norm", "norm", "var", "std", "var_mean", "std_mean")
def _squares(call: Call, machine: Machine) -> Work:
    """A square with the sum of each row; the mean of a variance is a sum more."""
    self, out = call.tensor(0), call.outputs[0]
    work = _rows("sum", self, self.numel // max(1, out.numel), machine)
    return work + Work(lanes=counts.passes(self.numel, chip=machine.chip, scalar=1.0))


@rule("_foreach_norm")
def _norms(call: Call, machine: Machine) -> Work:
    return total(_rows("sum", each, each.numel, machine) for each in call.argument(0))


def _dim_length(self: Tensor, dim: object) -> int:
    if not self.sizes:
        return 1
    return self.sizes[dim if isinstance(dim, int) else -1]


@rule("_softmax", "_log_softmax", "softmax", "log_softmax")
def _softmax(call: Call, machine: Machine) -> Work:
    self = call.tensor(0)
    return _rows("softmax", self, _dim_length(self, call.argument(1)), machine)


@rule("_softmax_backward_data", "_log_softmax_backward_data")
def _softmax_backward(call: Call, machine: Machine) -> Work:
    """Product with the result and its row sum, then two element-wise steps."""
    gradient, saved = call.tensor(0), call.tensor(1)
    work = _rows("sum", gradient, _dim_length(gradient, call.argument(2)), machine)
    return Work(lanes=work.lanes, flops=work.flops) + fused(
        ("mul", "sub", "mul"), (gradient, saved), call.outputs[0], machine
    )


@rule("native_layer_norm", "layer_norm")
def _layer_norm(call: Call, machine: Machine) -> Work:
    self = call.tensor(0)
    return _rows("layer_norm", self, math.prod(call.argument(1)), machine)


@rule("native_layer_norm_backward")
def _layer_norm_backward(call: Call, machine: Machine) -> Work:
    """Two row sums and four products for the input, two column sums for the parameters."""
    gradient, self = call.tensor(0), call.tensor(1)
    length = math.prod(call.argument(2))
    sums = 2 * _rows("sum", self, length, machine) + 2 * _rows(
        "sum", self, self.numel // max(1, length), machine
    )
    return Work(lanes=sums.lanes, flops=sums.flops) + fused(
        ("sub", "mul", "mul", "sub", "mul"), (gradient, self), self, machine
    )


@rule("_fused_rms_norm", "rms_norm")
def _rms_norm(call: Call, machine: Machine) -> Work:
    self = call.tensor(0)
    return _rows("rms_norm", self, math.prod(call.argument(1)), machine)


@rule("_fused_rms_norm_backward")
def _rms_norm_backward(call: Call, machine: Machine) -> Work:
    gradient, self = call.tensor(0), call.tensor(1)
    length = math.prod(call.argument(2))
    sums = _rows("sum", self, length, machine) + _rows(
        "sum", self, self.numel // max(1, length), machine
    )
    return Work(lanes=sums.lanes, flops=sums.flops) + fused(
        ("mul", "mul", "sub", "mul"), (gradient, self), self, machine
    )


@rule("native_batch_norm", "_native_batch_norm_legit", "native_group_norm", "batch_norm")
def _batch_norm(call: Call, machine: Machine) -> Work:
    self = call.tensor(0)
    return _rows("layer_norm", self, math.prod(self.sizes[2:]) or 1, machine)


@rule("native_batch_norm_backward", "native_group_norm_backward")
def _batch_norm_backward(call: Call, machine: Machine) -> Work:
    gradient, self = call.tensor(0), call.tensor(1)
    sums = 2 * _rows("sum", self, math.prod(self.sizes[2:]) or 1, machine)
    return Work(lanes=sums.lanes, flops=sums.flops) + fused(
        ("sub", "mul", "sub", "mul"), (gradient, self), self, machine
    )


@rule("topk")
def _top_k(call: Call, machine: Machine) -> Work:
    self, out = call.tensor(0), call.outputs[0]
    length = _dim_length(self, call.argument(2))
    k = int(call.argument(1))
    return counts.top_k(
        max(1, out.numel // max(1, k)),
        length,
        k,
        chip=machine.chip,
        dtype=self.row.name,
        lnc=machine.lnc,
    )


@rule("nll_loss_forward", "nll_loss2d_forward")
def _nll(call: Call, machine: Machine) -> Work:
    """One element of each row, and their sum."""
    self, target = call.tensor(0), call.tensor(1)
    del machine
    return counts.gather_elements(target.numel, self.row.bytes, index_bytes=target.row.bytes)


@rule("nll_loss_backward", "nll_loss2d_backward")
def _nll_backward(call: Call, machine: Machine) -> Work:
    """A zeroed gradient and one element written in each row."""
    target, out = call.tensor(2), call.outputs[0]
    del machine
    return Work(
        hbm_write_bytes=out.num_bytes,
        dma_descriptors=float(target.numel),
        software_descriptors=float(target.numel),
    )

"""Convolutions and pooling."""

from __future__ import annotations

import math

from neuron_chip import Work, counts
from torch_neuronx.ops.costs.call import Call, Machine, Tensor
from torch_neuronx.ops.costs.registry import rule


def _forward(images: Tensor, weight: Tensor, out: Tensor, groups: int, machine: Machine) -> Work:
    return counts.convolution(
        chip=machine.chip,
        batch=images.sizes[0],
        in_channels=images.sizes[1],
        out_channels=out.sizes[1],
        input_size=images.sizes[2:],
        output_size=out.sizes[2:],
        kernel_size=weight.sizes[2:],
        groups=groups,
        dtype=images.row.name,
        lnc=machine.lnc,
    )


@rule("convolution", "convolution_overrideable", "_convolution")
def _convolution(call: Call, machine: Machine) -> Work:
    groups = int(call.argument(8, 1))
    out = call.outputs[0]
    if call.argument(6):
        # A transposed convolution is the gradient of one from its result to its input.
        return _forward(out, call.tensor(1), call.tensor(0), groups, machine)
    return _forward(call.tensor(0), call.tensor(1), out, groups, machine)


@rule("convolution_backward")
def _backward(call: Call, machine: Machine) -> Work:
    gradient, images, weight = (call.tensor(index) for index in range(3))
    groups, wanted = int(call.argument(9)), call.argument(10)
    if call.argument(7):
        gradient, images = images, gradient
    one = _forward(images, weight, gradient, groups, machine)
    work = float(bool(wanted[0])) * one + float(bool(wanted[1])) * one
    if wanted[2]:
        work += Work(hbm_read_bytes=gradient.num_bytes)
    return work


@rule("max_pool2d_with_indices", "avg_pool2d", "max_pool3d_with_indices", "avg_pool3d")
def _pool(call: Call, machine: Machine) -> Work:
    images, out = call.tensor(0), call.outputs[0]
    taps = math.prod(call.argument(1))
    return Work(
        lanes=counts.passes(out.numel, chip=machine.chip, vector=float(taps)),
        flops={"vector": float(taps * out.numel)},
        hbm_read_bytes=images.num_bytes,
        hbm_write_bytes=sum(each.num_bytes for each in call.outputs),
    )

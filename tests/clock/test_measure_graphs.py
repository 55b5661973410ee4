"""Compiled graphs and collectives on the modelled clock."""

from __future__ import annotations

import torch

from python_process import run_python


def test_a_compiled_graph_is_one_launch_with_the_work_of_its_operators():
    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x @ w) + 1

    x, w = torch.randn(64, 128, device="neuron"), torch.randn(128, 256, device="neuron")
    compiled = torch.compile(function, backend="neuron")
    compiled(x, w)
    with torch.neuron.measure() as graph:
        compiled(x, w)
    with torch.neuron.measure() as eager:
        function(x, w)
    assert graph.work.launches == 1
    assert eager.work.launches == 3
    assert graph.work.flops["fp32"] == eager.work.flops["fp32"] == 2 * 64 * 128 * 256
    assert 0 < graph.time < eager.time
    assert graph.default_share == 0


def test_a_compiled_program_runs_dry():
    done = run_python(
        """
import torch
f = torch.compile(lambda x: torch.tanh(x @ x) + 1, backend="neuron")
y = f(torch.ones(64, 64, device="neuron"))
print(tuple(y.shape), y.device, torch.neuron.modelled_time() > 0)
""",
        NEURON_DRIVER="dry",
    )
    assert done.stdout == "(64, 64) neuron:0 True\n", done.stderr


def test_a_real_collective_is_on_the_clock_too():
    done = run_python(
        """
import torch, torch.distributed as dist
dist.init_process_group("neuron", rank=0, world_size=1, store=dist.HashStore())
x = torch.ones(1024, device="neuron")
with torch.neuron.measure() as m:
    dist.all_reduce(x)
print(m.breakdown.op)
"""
    )
    assert "c10d::neuron_all_reduce" in done.stdout, done.stderr

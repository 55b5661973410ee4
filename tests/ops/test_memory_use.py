"""No op copies its inputs: counted device memory and touched host memory are the CPU's.

A large output is the only large allocation of most ops; what more an op may take is what the
CPU's own kernel takes.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._pytree import tree_leaves

from ops.under_test import DEVICE

# Above the 32 MiB from which malloc always maps a block by itself, so that each shows in the
# process.
ROWS = 3072
SIZE = ROWS * ROWS
MATRIX = 4 * SIZE  # 36 MiB of float32
# Outputs that malloc takes from its heap, thread stacks, code pages.
SLACK = 12 << 20
# Device memory that an op's definition needs beside its outputs.
TEMPORARIES = {
    "index add in place": MATRIX // 2,  # the test's own clone
    "max pool": MATRIX // 2,  # int64 indices of a quarter of the elements
}

pytestmark = pytest.mark.skipif(
    DEVICE == "cpu" or not Path("/proc/self/clear_refs").exists(),
    reason="needs the device, and Linux's count of a process's memory",
)


def matrix(device: str) -> Tensor:
    return torch.linspace(-1, 1, SIZE, device=device).view(ROWS, ROWS)


# Each: the inputs of an op, made outside of what is measured, and the op.
Operation = tuple[Callable[[str], tuple[Any, ...]], Callable[..., Any]]


def of_matrix(function: Callable[..., Any]) -> Operation:
    return (lambda device: (matrix(device),)), function


def of_two(function: Callable[..., Any]) -> Operation:
    return (lambda device: (matrix(device), matrix(device))), function


def of_index(function: Callable[..., Any]) -> Operation:
    return (lambda device: (matrix(device), torch.arange(0, ROWS, 2, device=device))), function


ELEMENTWISE: dict[str, Operation] = {
    "add": of_two(torch.add),
    "add transposed": of_two(lambda x, y: x.t() + y),
    "add a row": of_matrix(lambda x: x + x[0]),
    "add in place": of_two(lambda x, y: x.add_(y)),
    "out": of_two(lambda x, y: torch.mul(x, x, out=y)),
    "compare": of_two(torch.lt),
    "where": of_two(lambda x, y: torch.where(x[0] > 0, x, y)),
    "exp": of_matrix(torch.exp),
    "gelu": of_matrix(F.gelu),
    "erfinv": of_matrix(torch.erfinv),
    "clamp": of_matrix(lambda x: x.clamp(-0.5, 0.5)),
    "digamma in place": of_matrix(lambda x: x.digamma_()),
    "to bfloat16": of_matrix(lambda x: x.to(torch.bfloat16)),
    "to float64": of_matrix(lambda x: x.double()),
    "clone": of_matrix(torch.clone),
    "contiguous": of_matrix(lambda x: x.t().contiguous()),
    "copy in place": of_two(lambda x, y: x.copy_(y.t())),
    "lerp": of_two(lambda x, y: torch.lerp(x, y, 0.3)),
    "addcdiv in place": of_two(lambda x, y: x.addcdiv_(x, y, value=0.1)),
    "foreach": of_two(lambda x, y: torch._foreach_mul_([x, y], 2.0)),
    "masked fill": of_matrix(lambda x: x.masked_fill(x[0] > 0, 0.0)),
    "dropout off": of_matrix(lambda x: F.dropout(x, 0.1, training=False)),
}
REDUCTIONS: dict[str, Operation] = {
    "sum": of_matrix(torch.sum),
    "sum of columns": of_matrix(lambda x: x.sum(0)),
    "mean of rows": of_matrix(lambda x: x.mean(1)),
    "amax of the transposed": of_matrix(lambda x: x.t().amax(0)),
    "argmax": of_matrix(lambda x: x.argmax(1)),
    "norm": of_matrix(lambda x: torch.linalg.vector_norm(x)),
    "var": of_matrix(lambda x: x.var(1)),
    "logsumexp": of_matrix(lambda x: x.logsumexp(1)),
    "any": of_matrix(lambda x: x.bool().any()),
    "cumsum": of_matrix(lambda x: x.cumsum(1)),
    "softmax": of_matrix(lambda x: F.softmax(x, -1)),
    "layer norm": of_matrix(lambda x: F.layer_norm(x, (ROWS,))),
    "rms norm": of_matrix(lambda x: F.rms_norm(x, (ROWS,))),
    "batch norm": of_matrix(lambda x: F.batch_norm(x, None, None, training=True)),
    "cross entropy": of_matrix(lambda x: F.cross_entropy(x, torch.arange(ROWS, device=x.device))),
    "sort": of_matrix(lambda x: x[:1024].sort(1)),
    "topk": of_matrix(lambda x: x.topk(5)),
}
MOVEMENT: dict[str, Operation] = {
    "index select": of_index(lambda x, i: x.index_select(0, i)),
    "index": of_index(lambda x, i: x[i]),
    "index columns": of_index(lambda x, i: x[:, i]),
    "gather": of_index(lambda x, i: x.gather(0, i[None, :1024].expand(1024, 1024))),
    "scatter in place": of_index(lambda x, i: x.scatter_(1, i.expand(ROWS, -1), 0.0)),
    "index put in place": of_index(lambda x, i: x.index_put_((i,), x[0].clone())),
    "index add in place": of_index(lambda x, i: x.index_add_(0, i, x[: len(i)].clone())),
    "cat": of_two(lambda x, y: torch.cat([x[:2048], y[:2048]])),
    "stack": of_two(lambda x, y: torch.stack([x[0], y[0]])),
    "flip": of_matrix(lambda x: x.flip(0)),
    "roll": of_matrix(lambda x: x.roll(3, 0)),
    "tril": of_matrix(torch.tril),
    "pad": of_matrix(lambda x: F.pad(x, (1, 1))),
    "embedding": of_index(lambda x, i: F.embedding(i, x)),
    "repeat": of_matrix(lambda x: x[:1024].repeat(2, 1)),
    "interpolate": of_matrix(lambda x: F.interpolate(x[None, None], scale_factor=0.5)),
    "max pool": of_matrix(lambda x: F.max_pool2d(x[None, None], 2)),
    "average pool": of_matrix(lambda x: F.avg_pool2d(x[None, None], 2)),
    "unfold": of_matrix(lambda x: x.unfold(1, 8, 8).contiguous()),
}
PRODUCTS: dict[str, Operation] = {
    "matrix by vector": of_matrix(lambda x: x @ x[0]),
    "matrix by few columns": of_matrix(lambda x: x @ x[:, :8]),
    "transposed by few columns": of_matrix(lambda x: x.t() @ x[:, :8]),
    "linear": of_matrix(lambda x: F.linear(x[:16], x, x[0])),
    "batches": of_matrix(
        lambda x: x.view(64, 144, 1024)[:, :, :144] @ x.view(64, 1024, 144)[:, :144]
    ),
    "outer": of_matrix(lambda x: torch.outer(x[0], x[1])),
    "complex fft": of_matrix(lambda x: torch.fft.rfft(x[:2048])),
}
VIEWS: dict[str, Callable[[Tensor], Any]] = {
    "view": lambda x: x.view(-1),
    "transpose": lambda x: x.t(),
    "slice": lambda x: x[1:, ::2],
    "expand": lambda x: x[:1].expand(ROWS, ROWS),
    "permute": lambda x: x.view(64, 64, -1).permute(2, 0, 1),
    "split": lambda x: x.split(100),
    "unbind": lambda x: x.unbind(1)[:3],
    "diagonal": lambda x: x.diagonal(),
    "as strided": lambda x: x.as_strided((ROWS, 2), (1, 1)),
    "unfold": lambda x: x.unfold(0, 8, 1),
    "detach": lambda x: x.detach(),
    "view of another dtype": lambda x: x.view(torch.int32),
    "reshape that needs no copy": lambda x: x.reshape(64, -1),
    "contiguous that needs no copy": lambda x: x.contiguous(),
    "squeeze": lambda x: x[None].squeeze(0),
    "movedim": lambda x: x.movedim(0, 1),
    "chunk": lambda x: x.chunk(3, 1),
    "real": lambda x: torch.view_as_complex(x.view(-1, 2)).real,
    "conjugate": lambda x: torch.view_as_complex(x.view(-1, 2)).conj(),
}
ALL = {**ELEMENTWISE, **REDUCTIONS, **MOVEMENT, **PRODUCTS}


def process_memory(field: str) -> int:
    status = Path("/proc/self/status").read_text()
    found = re.search(rf"^{field}:\s+(\d+) kB", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) << 10


def release() -> None:
    gc.collect()
    torch.neuron.synchronize()
    torch.neuron.empty_cache()


def bytes_of_results(result: Any, known: Iterable[Tensor]) -> int:
    """Bytes of the storages that an op made."""
    before = {x.untyped_storage().data_ptr() for x in known}
    made = {
        x.untyped_storage().data_ptr(): x.untyped_storage().nbytes()
        for x in tree_leaves(result)
        if isinstance(x, Tensor) and x.untyped_storage().data_ptr() not in before
    }
    return sum(made.values())


def touched(device: str, operation: Operation) -> tuple[int, int]:
    """Host memory that an op touches at its peak, and the bytes of its outputs."""
    make, function = operation
    inputs = make(device)
    function(*make(device))  # code pages, thread pools, caches of the first call
    release()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = process_memory("VmRSS")
    result = function(*inputs)
    torch.neuron.synchronize()
    return process_memory("VmHWM") - before, bytes_of_results(result, inputs)


def one_in_four(names: Iterable[str]) -> list[Any]:
    """All names; three of four only in the sweep."""
    rest = [pytest.mark.slow, pytest.mark.sweep]
    return [
        pytest.param(name, marks=[] if index % 4 == 0 else rest) for index, name in enumerate(names)
    ]


@pytest.mark.parametrize("name", one_in_four(ALL))
def test_op_takes_no_more_memory_than_on_the_cpu(name):
    # Outputs below malloc's limit may come from its heap, as memory that was touched before.
    theirs = max(touched("cpu", ALL[name]))
    ours, _ = touched(DEVICE, ALL[name])
    assert ours <= theirs * 1.05 + SLACK, (
        f"{name} touches {ours / 2**20:.1f} MiB, on the CPU {theirs / 2**20:.1f} MiB; "
        f"the input has {MATRIX >> 20} MiB"
    )


@pytest.mark.parametrize("name", one_in_four([*ELEMENTWISE, *MOVEMENT]))
def test_op_is_counted_for_its_outputs_only(name):
    make, function = ALL[name]
    inputs = make(DEVICE)
    release()
    torch.neuron.reset_peak_memory_stats()
    before = torch.neuron.memory_allocated()
    result = function(*inputs)
    torch.neuron.synchronize()
    peak = torch.neuron.max_memory_allocated() - before
    outputs = bytes_of_results(result, inputs)
    # 64 KiB: index and mask tensors that the function itself makes.
    temporaries = TEMPORARIES.get(name, 0) + (64 << 10)
    assert outputs <= peak <= outputs * 1.05 + temporaries


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_takes_no_memory_and_shares_its_storage(name):
    x = matrix(DEVICE)
    torch.neuron.reset_peak_memory_stats()
    before = torch.neuron.memory_allocated()
    views = [v for v in tree_leaves(VIEWS[name](x)) if isinstance(v, Tensor)]
    assert torch.neuron.max_memory_allocated() == before
    assert {v.untyped_storage().data_ptr() for v in views} == {x.untyped_storage().data_ptr()}


def test_training_peak_is_the_sum_of_what_lives():
    """Weights, gradients, two optimizer states, and the activations that backward needs."""
    torch.manual_seed(0)
    width, batch = 512, 128
    model = torch.nn.Sequential(
        torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width)
    ).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(batch, width).to(DEVICE)

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    for _ in range(3):
        step()
    torch.neuron.synchronize()
    torch.neuron.reset_peak_memory_stats()
    step()
    torch.neuron.synchronize()
    parameters = sum(p.numel() * 4 for p in model.parameters())
    activation = batch * width * 4
    # Parameters, gradients and Adam's two moments; the input, and at most five activations more.
    floor = 4 * parameters + activation
    assert (
        floor
        <= torch.neuron.max_memory_allocated() - leftovers(model, optimizer, x)
        <= (floor + 5 * activation) * 1.05 + parameters
    )


def leftovers(model: torch.nn.Module, optimizer: torch.optim.Optimizer, x: Tensor) -> int:
    """Bytes on the device that belong to other tests."""
    mine = sum(t.numel() * 4 for t in [*model.parameters(), x])
    mine += sum(p.grad.numel() * 4 for p in model.parameters() if p.grad is not None)
    mine += sum(
        t.numel() * 4
        for state in optimizer.state.values()
        for t in state.values()
        if isinstance(t, Tensor) and t.device.type != "cpu"
    )
    return max(0, torch.neuron.memory_allocated() - mine)

"""torch.distributed on neuron tensors: two processes, the collectives, DDP and FSDP2."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

WORLD = 2
DEADLINE = timedelta(seconds=60)


def _worker(rank: int, function: Callable[[int], None], store: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "neuron", init_method=f"file://{store}", rank=rank, world_size=WORLD, timeout=DEADLINE
    )
    try:
        torch.neuron.set_device(rank)
        function(rank)
        Path(f"{store}.passed.{rank}").touch()
    finally:
        dist.destroy_process_group()


def ranks_that_pass(function: Callable[[int], None], tmp_path: Path) -> list[int]:
    store = os.fspath(tmp_path / "store")
    mp.spawn(_worker, args=(function, store), nprocs=WORLD)
    return [rank for rank in range(WORLD) if Path(f"{store}.passed.{rank}").exists()]


def _collectives(rank: int) -> None:
    device = torch.device("neuron", rank)
    mine = torch.full((3,), float(rank + 1), device=device)
    total = mine.clone()
    dist.all_reduce(total)
    assert total.tolist() == [3.0] * 3
    gathered = torch.empty(6, device=device)
    dist.all_gather_into_tensor(gathered, mine)
    assert gathered.tolist() == [1.0] * 3 + [2.0] * 3
    share = torch.empty(3, device=device)
    dist.reduce_scatter_tensor(share, torch.arange(6.0, device=device))
    assert share.tolist() == [2.0 * (i + 3 * rank) for i in range(3)]
    swapped = torch.empty(2, device=device)
    dist.all_to_all_single(swapped, torch.tensor([10.0 * rank, 10.0 * rank + 1], device=device))
    assert swapped.tolist() == [float(rank), 10.0 + rank]
    word = torch.tensor([7 if rank == 0 else 0], device=device)
    dist.broadcast(word, src=0)
    assert word.item() == 7
    if rank == 0:
        dist.send(mine, dst=1)
    else:
        dist.recv(mine, src=0)
        assert mine.tolist() == [1.0] * 3
    work = dist.all_reduce(mine, async_op=True)
    work.wait()
    dist.barrier()


def _model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))


def _batch() -> torch.Tensor:
    return torch.randn(4, 6, generator=torch.Generator().manual_seed(1))


def _trained_alone() -> list[torch.Tensor]:
    model = _model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(_batch()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return [parameter.detach() for parameter in model.parameters()]


def _train(model: nn.Module, rank: int) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    mine = _batch().chunk(WORLD)[rank].to(torch.device("neuron", rank))
    for _ in range(3):
        model(mine).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def _ddp(rank: int) -> None:
    model = nn.parallel.DistributedDataParallel(_model().to(torch.device("neuron", rank)))
    _train(model, rank)
    for actual, expected in zip(model.parameters(), _trained_alone(), strict=True):
        torch.testing.assert_close(actual.detach().cpu(), expected)


def _fsdp2(rank: int) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("neuron", (WORLD,))
    model = copy.deepcopy(_model()).to(torch.device("neuron", rank))
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    _train(model, rank)
    for actual, expected in zip(model.parameters(), _trained_alone(), strict=True):
        torch.testing.assert_close(actual.full_tensor().detach().cpu(), expected)


@pytest.mark.parametrize("function", [_collectives, _ddp, _fsdp2])
def test_two_ranks(function, tmp_path):
    assert ranks_that_pass(function, tmp_path) == list(range(WORLD))

"""Random operators in a compiled graph: the numbers of eager, from the same generator."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint


@pytest.fixture(autouse=True)
def _fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def several(x):
    return (
        F.dropout(x, 0.3) + torch.rand(x.shape[1], device=x.device),
        torch.randn_like(x),
        torch.bernoulli(x.sigmoid()),
        torch.randint(0, 9, (4,), device=x.device),
    )


def in_place(x):
    return (
        x.clone().normal_(1, 2),
        torch.empty_like(x).uniform_(-1, 3),
        torch.empty(5, device=x.device).exponential_(),
        torch.empty(6, device=x.device).bernoulli_(0.3),
    )


def with_cpu_kernels(x):
    return (
        torch.multinomial(x.abs(), 4),
        torch.poisson(x.abs()),
        torch.normal(x, x.abs()),
        torch.randperm(7, device=x.device),
        F.rrelu(x, training=True),
    )


@pytest.mark.parametrize("function", [several, in_place, with_cpu_kernels])
@pytest.mark.parametrize("index", [0, 1])
def test_two_calls_give_eagers_numbers_and_leave_eagers_state(function, index):
    x = torch.randn(16, 32, device=f"neuron:{index}")
    compiled = torch.compile(function, backend="neuron", fullgraph=True)
    found = []
    for call in (function, compiled):
        torch.manual_seed(3)
        found.append((call(x), call(x), torch.neuron.get_rng_state(index)))
    for actual, expected in zip(tree_leaves(found[1]), tree_leaves(found[0]), strict=True):
        torch.testing.assert_close(actual, expected)


def test_a_state_put_back_repeats_the_numbers():
    compiled = torch.compile(lambda x: F.dropout(x, 0.5), backend="neuron")
    x = torch.ones(64, device="neuron")
    state = torch.neuron.get_rng_state()
    first, second = compiled(x), compiled(x)
    torch.neuron.set_rng_state(state)
    assert torch.equal(compiled(x), first)
    assert not torch.equal(first, second)


def test_channels_last_draws_in_eagers_order():
    x = torch.randn(2, 3, 4, 5, device="neuron").to(memory_format=torch.channels_last)
    compiled = torch.compile(lambda x: torch.rand_like(x + 1) * x, backend="neuron")
    torch.manual_seed(0)
    expected = torch.rand_like(x + 1) * x
    torch.manual_seed(0)
    torch.testing.assert_close(compiled(x), expected)


def test_numbers_of_the_cpu_stay_the_cpus():
    def function(x):
        return torch.rand(4), x + torch.rand(4).to("neuron"), torch.rand(4, device="neuron")

    x = torch.ones(4, device="neuron")
    torch.manual_seed(0)
    expected = function(x)
    torch.manual_seed(0)
    actual = torch.compile(function, backend="neuron", fullgraph=True)(x)
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other)


def losses_and_gradients(compiled: bool) -> list[torch.Tensor]:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(32, 64), nn.Dropout(0.2), nn.Linear(64, 32)).to("neuron")

    def noisy(x):
        return F.dropout(model(x).relu(), 0.4) + torch.rand_like(x)

    def function(x):
        once = checkpoint(noisy, x, use_reentrant=False)
        twice = checkpoint(noisy, once, use_reentrant=False)
        return F.dropout(twice, 0.5).square().mean()

    call = torch.compile(function, backend="neuron", fullgraph=True) if compiled else function
    found = []
    for step in range(3):
        torch.manual_seed(step)
        loss = call(torch.randn(3, 32, device="neuron"))
        loss.backward()
        found += [loss.detach(), model[0].weight.grad.clone(), torch.rand(1, device="neuron")]
        model.zero_grad()
    return found


def test_checkpoints_recompute_with_the_numbers_of_the_forward():
    actual, expected = losses_and_gradients(True), losses_and_gradients(False)
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other)

"""Random ops: the device's own numbers, repeatable, of the distribution the CPU draws from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from compare import assert_same
from ops.calls import Arguments, outcome_of
from ops.catalogue import OPS, marked, samples_of
from ops.exceptions import RANDOM
from ops.under_test import DEVICE, Placement

COUNT = 20_000
# A correct generator fails one test in ten thousand of these; seeds are fixed, so none will.
SIGNIFICANCE = 1e-4

DRAWS: dict[str, Callable[[str, torch.dtype], Tensor]] = {
    "rand": lambda device, dtype: torch.rand(COUNT, device=device, dtype=dtype),
    "randn": lambda device, dtype: torch.randn(COUNT, device=device, dtype=dtype),
    "rand_like": lambda device, dtype: torch.rand_like(
        torch.empty(COUNT, device=device, dtype=dtype)
    ),
    "randn_like": lambda device, dtype: torch.randn_like(
        torch.empty(COUNT, device=device, dtype=dtype)
    ),
    "uniform_": lambda device, dtype: torch.empty(COUNT, device=device, dtype=dtype).uniform_(
        -2, 5
    ),
    "normal_": lambda device, dtype: torch.empty(COUNT, device=device, dtype=dtype).normal_(3, 0.5),
    "normal_tensors": lambda device, dtype: torch.normal(
        torch.zeros(COUNT, device=device, dtype=dtype),
        torch.full((COUNT,), 2.0, device=device, dtype=dtype),
    ),
    "exponential_": lambda device, dtype: torch.empty(
        COUNT, device=device, dtype=dtype
    ).exponential_(1.5),
    "cauchy_": lambda device, dtype: torch.empty(COUNT, device=device, dtype=dtype).cauchy_(1, 2),
    "log_normal_": lambda device, dtype: torch.empty(COUNT, device=device, dtype=dtype).log_normal_(
        0.1, 0.5
    ),
    "geometric_": lambda device, dtype: torch.empty(COUNT, device=device, dtype=dtype).geometric_(
        0.3
    ),
    "bernoulli": lambda device, dtype: torch.bernoulli(
        torch.full((COUNT,), 0.3, device=device, dtype=dtype)
    ),
    "bernoulli_": lambda device, dtype: torch.empty(COUNT, device=device, dtype=dtype).bernoulli_(
        0.7
    ),
    "poisson": lambda device, dtype: torch.poisson(
        torch.full((COUNT,), 4.0, device=device, dtype=dtype)
    ),
    "dropout": lambda device, dtype: torch.nn.functional.dropout(
        torch.ones(COUNT, device=device, dtype=dtype), 0.25
    ),
    "alpha_dropout": lambda device, dtype: torch.nn.functional.alpha_dropout(
        torch.ones(COUNT, device=device, dtype=dtype), 0.25, training=True
    ),
    "rrelu": lambda device, dtype: torch.nn.functional.rrelu(
        torch.full((COUNT,), -1.0, device=device, dtype=dtype), training=True
    ),
}
INTEGER_DRAWS: dict[str, Callable[[str], Tensor]] = {
    "randint": lambda device: torch.randint(-3, 50, (COUNT,), device=device),
    "randint_like": lambda device: torch.randint_like(
        torch.empty(COUNT, device=device, dtype=torch.int64), 9
    ),
    "random_": lambda device: torch.empty(COUNT, dtype=torch.int64, device=device).random_(5, 100),
    "random_int8": lambda device: torch.empty(COUNT, dtype=torch.int8, device=device).random_(),
    "random_bool": lambda device: torch.empty(COUNT, dtype=torch.bool, device=device).random_(),
    "binomial": lambda device: torch.binomial(
        torch.full((COUNT,), 10.0, device=device), torch.full((COUNT,), 0.4, device=device)
    ),
    "multinomial": lambda device: torch.multinomial(
        torch.tensor([0.1, 0.5, 0.0, 0.4], device=device), COUNT, replacement=True
    ),
    "multinomial_without_replacement": lambda device: torch.multinomial(
        torch.tensor([[0.1, 0.5, 0.4]], device=device).expand(COUNT, 3), 1
    ).flatten(),
    "randperm_head": lambda device: torch.stack(
        [torch.randperm(16, device=device) for _ in range(400)]
    )[:, :4].flatten(),
}
CASES = [
    pytest.param(lambda device, draw=draw, dtype=dtype: draw(device, dtype), id=f"{name}-{label}")
    for name, draw in DRAWS.items()
    for label, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16))
] + [pytest.param(draw, id=name) for name, draw in INTEGER_DRAWS.items()]


def numbers(draw: Callable[[str], Tensor], device: str, seed: int) -> np.ndarray:
    torch.manual_seed(seed)
    drawn = draw(device)
    assert drawn.device.type == torch.device(device).type
    return drawn.double().cpu().numpy()


@pytest.mark.parametrize("draw", CASES)
def test_numbers_have_the_cpus_distribution(draw):
    ours, theirs = numbers(draw, DEVICE, 1), numbers(draw, "cpu", 2)
    assert ours.shape == theirs.shape
    if len(np.unique(theirs)) < 200:
        values = np.union1d(ours, theirs)
        table = np.array([[(sample == v).sum() for v in values] for sample in (ours, theirs)])
        if len(values) == 1:
            return
        frequent = table.sum(axis=0) >= 20
        assert stats.chi2_contingency(table[:, frequent]).pvalue > SIGNIFICANCE
        assert table[0, ~frequent].sum() <= 100
    else:
        assert stats.ks_2samp(ours, theirs).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("draw", CASES)
def test_numbers_repeat_with_the_seed_and_differ_without(draw):
    first, again, other = (numbers(draw, DEVICE, seed) for seed in (7, 7, 8))
    assert (first == again).all()
    if len(np.unique(first)) > 1:
        assert (first != other).any()


@pytest.mark.parametrize("draw", CASES)
def test_numbers_continue_from_a_saved_state(draw):
    draw(DEVICE)
    module = torch.get_device_module(DEVICE) if DEVICE != "cpu" else torch
    state = module.get_rng_state()
    first = draw(DEVICE)
    second = draw(DEVICE)
    module.set_rng_state(state)
    assert torch.equal(draw(DEVICE), first)
    assert torch.equal(draw(DEVICE), second)


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: torch.rand(64, device=DEVICE, generator=g),
        lambda g: torch.randn(64, device=DEVICE, generator=g),
        lambda g: torch.randint(1000, (64,), device=DEVICE, generator=g),
        lambda g: torch.randperm(64, device=DEVICE, generator=g),
        lambda g: torch.empty(64, device=DEVICE).normal_(generator=g),
        lambda g: torch.empty(64, device=DEVICE).exponential_(generator=g),
        lambda g: torch.bernoulli(torch.full((64,), 0.5, device=DEVICE), generator=g),
        lambda g: torch.multinomial(torch.ones(64, device=DEVICE), 32, generator=g),
    ],
)
def test_a_generator_of_ones_own_leaves_the_default_one_alone(draw):
    torch.manual_seed(3)
    untouched = torch.rand(8, device=DEVICE)
    torch.manual_seed(3)
    first = draw(torch.Generator(DEVICE).manual_seed(11))
    second = draw(torch.Generator(DEVICE).manual_seed(11))
    assert torch.equal(first, second)
    assert torch.equal(torch.rand(8, device=DEVICE), untouched)


@pytest.mark.parametrize(
    "op",
    [
        marked("random", op.formatted_name, op, one_in=3)
        for op in OPS
        if op.name in RANDOM and torch.float32 in op.supported_dtypes("cpu")
    ],
)
def test_random_op_repeats_with_the_seed(op):
    for sample in samples_of(op, torch.float32):
        first = outcome_of(op.op, Arguments.of(sample, op).placed(Placement()))
        second = outcome_of(op.op, Arguments.of(sample, op).placed(Placement()))
        assert first.error is None, first.error
        assert_same(second.value, first.value)


def test_dropout_scales_what_it_keeps_and_gives_the_same_mask_to_the_gradient():
    x = torch.ones(10_000, device=DEVICE, requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.2)
    y.sum().backward()
    kept = y != 0
    assert torch.equal(y.detach(), kept / 0.8)
    assert torch.equal(x.grad, kept / 0.8)
    assert 0.78 < kept.float().mean().item() < 0.82

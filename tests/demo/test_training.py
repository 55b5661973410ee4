"""The small GPT learns, is causal, and its learning rate follows the schedule."""

from __future__ import annotations

import pytest
import torch
from examples.demo.chart import chart
from examples.demo.gpt import GPT, GPTConfig
from examples.demo.places import places
from examples.demo.shakespeare_text import batch
from examples.demo.train import WARM_UP_STEPS, Learner, learning_rate_factor

TINY = GPTConfig(vocabulary=128, context=16, width=64, num_heads=2, num_layers=1)


def test_a_learner_learns_a_repeated_line():
    torch.manual_seed(0)
    learner = Learner(places("cpu").reference, GPT(TINY), num_steps=100)
    line = torch.tensor(list(b"to be or not to be, that is the question. " * 8))
    generator = torch.Generator().manual_seed(0)
    losses = [
        learner.step(batch(line, size=4, context=16, generator=generator)) for _ in range(100)
    ]
    assert losses[0] == pytest.approx(4.85, abs=0.1)  # ln(128)
    assert losses[-1] < 2.0


def test_a_logit_does_not_depend_on_later_tokens():
    torch.manual_seed(0)
    model = GPT(TINY)
    tokens = torch.randint(128, (1, 16))
    changed = tokens.clone()
    changed[0, 10:] = 1
    with torch.no_grad():
        before, after = model(tokens), model(changed)
    torch.testing.assert_close(before[:, :10], after[:, :10])
    assert not torch.equal(before[:, 10:], after[:, 10:])


def test_the_learning_rate_rises_then_falls_to_a_tenth():
    factors = [learning_rate_factor(step, num_steps=200) for step in range(201)]
    assert factors[0] == pytest.approx(1 / WARM_UP_STEPS)
    assert max(factors) == pytest.approx(1.0)
    assert factors[-1] == pytest.approx(0.1)


def test_a_batch_is_stretches_of_the_text():
    text = torch.arange(100)
    found = batch(text, size=5, context=16, generator=torch.Generator().manual_seed(0))
    assert found.shape == (5, 17)
    assert torch.equal(found - found[:, :1], torch.arange(17).expand(5, 17))


def test_a_falling_curve_is_drawn_from_the_left_top_to_the_right_bottom():
    drawn = chart([8.0, 4.0, 2.0, 1.0], title="loss", height=4).splitlines()
    assert drawn[0] == "loss"
    assert drawn[1].startswith("  8.00 ┤█")
    assert drawn[1].endswith(" ")
    assert drawn[4].startswith("  1.00 ┤")
    assert drawn[4].endswith("▁")


def test_a_flat_curve_can_be_drawn():
    assert chart([1.0, 1.0], title="flat", height=2).splitlines()[2].endswith("▁▁")

"""torch.compile(backend="neuron") on neuron tensors: the values of eager, one graph, no copies."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend


@pytest.fixture(autouse=True)
def _fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def counted() -> CompileCounterWithBackend:
    return CompileCounterWithBackend("neuron")


@pytest.mark.smoke
def test_a_compiled_function_gives_eagers_values():
    x, y = torch.randn(17, 33, device="neuron"), torch.randn(33, device="neuron")

    def function(x, y):
        return F.gelu(x * 2 + y).softmax(-1), (x + y).sum(0)

    compiled = torch.compile(function, backend="neuron", fullgraph=True)
    for actual, expected in zip(compiled(x, y), function(x, y), strict=True):
        assert actual.device == x.device
        torch.testing.assert_close(actual, expected)


def test_training_gives_eagers_losses_with_one_compile():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 24), nn.LayerNorm(24), nn.SiLU(), nn.Linear(24, 5))
    inputs, labels = torch.randn(8, 12, device="neuron"), torch.arange(8, device="neuron") % 5
    counter = counted()

    def losses(compiled: bool) -> list[float]:
        trained = copy.deepcopy(model).to("neuron")
        optimizer = torch.optim.AdamW(trained.parameters(), lr=1e-2)
        forward = torch.compile(trained, backend=counter, fullgraph=True) if compiled else trained
        found = []
        for _ in range(5):
            loss = F.cross_entropy(forward(inputs), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            found.append(loss.item())
        return found

    assert losses(compiled=True) == pytest.approx(losses(compiled=False), rel=1e-5)
    assert counter.frame_count == 1


def test_ten_lengths_need_one_compile_with_dynamic_shapes():
    counter = counted()
    compiled = torch.compile(lambda x: (x.relu() @ x.T).sum(-1), backend=counter, dynamic=True)
    for length in range(3, 13):
        x = torch.randn(length, 8, device="neuron")
        torch.testing.assert_close(compiled(x), (x.relu() @ x.T).sum(-1))
    assert counter.frame_count == 1


def test_inputs_change_in_place_and_views_stay_views():
    def function(x):
        x.add_(1)
        return x[1:], x * 2

    x, reference = torch.zeros(4, device="neuron"), torch.zeros(4)
    view, _ = torch.compile(function, backend="neuron", fullgraph=True)(x)
    function(reference)
    assert x.tolist() == reference.tolist()
    assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


def test_autocast_inside_the_graph():
    model = nn.Linear(16, 16).to("neuron")
    x = torch.randn(4, 16, device="neuron")

    def function(x):
        with torch.autocast("neuron"):
            return model(x)

    actual = torch.compile(function, backend="neuron", fullgraph=True)(x)
    assert actual.dtype is torch.bfloat16
    torch.testing.assert_close(actual, function(x))


def test_a_graph_break_is_crossed():
    def function(x):
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos()

    x = torch.randn(5, device="neuron")
    counter = counted()
    torch.testing.assert_close(torch.compile(function, backend=counter)(x), function(x))
    assert counter.frame_count == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"options": {"max_autotun": True}}, "Did you mean 'max_autotune'"),
        ({"mode": "max-autotuned"}, "Did you mean 'max-autotune'"),
        ({"options": {"max_autotune": "yes"}}, "a str. Give it a bool"),
        ({"options": {"fallback_random": False}}, "Leave it out"),
    ],
)
def test_an_unknown_option_or_mode_names_the_nearest(options, words):
    compiled = torch.compile(lambda x: x + 1, backend="neuron", **options)
    with pytest.raises(Exception, match=words):
        compiled(torch.ones(2, device="neuron"))
    assert (torch.ones(2, device="neuron") + 1).tolist() == [2.0, 2.0]


def test_checkpointed_activations_recompute_inside_the_graph():
    from torch.utils.checkpoint import checkpoint

    layer = nn.Linear(8, 8).to("neuron")
    x = torch.randn(3, 8, device="neuron", requires_grad=True)

    def function(x):
        return checkpoint(lambda y: layer(y).tanh(), x, use_reentrant=False).sum()

    torch.compile(function, backend="neuron", fullgraph=True)(x).backward()
    compiled, x.grad = x.grad, None
    function(x).backward()
    torch.testing.assert_close(compiled, x.grad)

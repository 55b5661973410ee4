"""Bugs that users of other out-of-tree devices reported, 46 to 59: numerics, dtypes, RNG."""

from __future__ import annotations

import operator

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from compare import assert_same
from ops.under_test import DEVICE, Placement


def on_both(function, *args):
    """The result on the device and on the CPU, of copies of the same arguments."""
    return function(*Placement()(args)), function(*Placement("cpu")(args))


def randn(*shape):
    torch.manual_seed(sum(shape))
    return torch.randn(*shape)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_46_lerp_of_positive_numbers_is_positive(dtype):
    """pytorch#196067: lerp_ in half precision with a float32 weight gave negative values."""
    start, end = torch.rand(1000).to(dtype), torch.rand(1000).to(dtype)
    for weight in (0.25, 0.999, torch.rand(1000).to(dtype)):
        ours, theirs = on_both(lambda s, e, w: s.lerp_(e, w), start, end, weight)
        assert (ours >= 0).all().item()
        assert_same(ours, theirs)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD"])
def test_47_the_scaler_skips_the_step_after_an_infinite_gradient(name, fused):
    """pytorch#186360: fused Adam ignored grad_scale and found_inf."""
    w = torch.ones(4, device=DEVICE, requires_grad=True)
    optimizer = getattr(torch.optim, name)([w], lr=0.1, fused=fused)
    scaler = torch.amp.GradScaler(DEVICE, init_scale=8.0)
    scaler.scale((w * torch.inf).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [1.0] * 4
    assert scaler.get_scale() == 4.0
    optimizer.zero_grad()
    scaler.scale((w * 2).sum()).backward()
    scaler.step(optimizer)
    reference = torch.ones(4, requires_grad=True)
    plain = getattr(torch.optim, name)([reference], lr=0.1)
    reference.grad = torch.full((4,), 2.0)
    plain.step()
    torch.testing.assert_close(w.detach().cpu(), reference.detach())


@pytest.mark.parametrize("target", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("source", [torch.float32, torch.bfloat16, torch.float16, torch.int64])
def test_48_casts_to_integers_are_the_cpus(source, target):
    """torch-xpu-ops#889: a cast saturated where the CPU wraps."""
    values = torch.tensor([0.0, 1.7, -1.7, 127.5, 128.0, 200.0, 255.0, 256.0, 300.0, -200.0, 1e4])
    x = values.repeat(5).to(source)
    assert_same(*on_both(lambda x: x.to(target), x))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_49_index_add_with_alpha(dtype):
    """torch-xpu-ops#3530: index_add_ with alpha lost accuracy in bfloat16."""
    x, source = randn(10, 4).to(dtype), randn(30, 4).to(dtype)
    index = torch.arange(30) % 10

    def function(x, index, source):
        return x.index_add_(0, index, source, alpha=0.5)

    assert_same(
        *on_both(function, x, index, source),
        truth=lambda: function(x.double(), index, source.double()),
    )


def test_50_distances_and_one_dimensional_convolutions():
    """torch-xpu-ops#878, #1789: cdist with p=2, conv1d."""
    a, b = randn(40, 8), randn(30, 8)
    for p in (0.5, 1.0, 2.0, torch.inf):
        assert_same(
            *on_both(lambda a, b, p=p: torch.cdist(a, b, p=p), a, b),
            truth=lambda p=p: torch.cdist(a.double(), b.double(), p=p),
        )
    x, w = randn(2, 4, 50), randn(6, 2, 5)
    for options in ({}, {"stride": 2, "padding": 3}, {"dilation": 3}):
        assert_same(
            *on_both(lambda x, w, o=options: F.conv1d(x, w, groups=2, **o), x, w),
            truth=lambda o=options: F.conv1d(x.double(), w.double(), groups=2, **o),
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_51_writes_to_the_same_place_more_than_once(dtype):
    """pytorch#152755, #77406, #156173: put_ and index_put with duplicates, in half precision."""
    index = torch.tensor([0, 2, 2, 0, 2])
    values = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5], dtype=dtype)
    x = torch.ones(4, dtype=dtype)
    assert_same(*on_both(lambda x, i, v: x.put_(i, v, accumulate=True), x, index, values))
    assert_same(*on_both(lambda x, i, v: x.index_put_((i,), v, accumulate=True), x, index, values))
    y = torch.zeros(3, 4, dtype=dtype)
    assert_same(
        *on_both(
            lambda y, i, v: y.index_put_((i[:, None], i), v, accumulate=True),
            y,
            torch.tensor([0, 2, 2]),
            torch.tensor([0.5], dtype=dtype),
        )
    )


def test_52_a_scatter_without_indices_copies_its_input():
    """intel-extension-for-pytorch#682: the out-of-place scatter returned uninitialised memory."""
    x = randn(3, 4)
    empty = torch.empty(0, dtype=torch.int64)
    ours, theirs = on_both(lambda x, i: x.scatter(1, i.view(3, 0), 1.0), x, empty)
    assert_same(ours, theirs)
    assert torch.equal(theirs, x)
    assert_same(*on_both(lambda x, i: x.index_add(0, i, x[:0]), x, empty))
    assert_same(*on_both(lambda x, i: x.index_copy(0, i, x[:0]), x, empty))


@pytest.mark.parametrize(
    "x",
    [
        torch.tensor([2**63 - 1, -(2**63), 0, -1]),
        torch.tensor([2**31 - 1, -(2**31)], dtype=torch.int32),
        torch.tensor([0x7FC00001, 0x7F800001, -1], dtype=torch.int32).view(torch.float32),
        torch.tensor([-0.0, 0.0, torch.inf, -torch.inf]),
        torch.tensor([1, 0x007FFFFF, -2147483647], dtype=torch.int32).view(torch.float32),
        torch.tensor([1, 0x7FFF, -1], dtype=torch.int16).view(torch.bfloat16),
    ],
)
def test_53_extreme_values_survive_the_round_trip_bit_by_bit(x):
    """optimum-habana#1876: the largest int64 could not be moved."""
    for back in (
        x.to(DEVICE).cpu(),
        x.to(DEVICE).clone().cpu(),
        x.to(DEVICE)[:].contiguous().cpu(),
    ):
        assert torch.equal(back.view(torch.uint8), x.view(torch.uint8))


def test_54_a_failing_index_is_reported_once_and_the_device_goes_on():
    """Ascend/pytorch#153: a crash in index_put_ poisoned everything after it."""
    x = torch.zeros(4, device=DEVICE)
    for _ in range(3):
        with pytest.raises((IndexError, RuntimeError)):
            x[torch.tensor([9], device=DEVICE)].sum().item()
        with pytest.raises((IndexError, RuntimeError)):
            x[torch.ones(5, dtype=torch.bool, device=DEVICE)] = 1
        assert (torch.ones(3, device=DEVICE) * 2).tolist() == [2.0] * 3
    x[torch.tensor([True, False, True, False], device=DEVICE)] = 5
    assert x.tolist() == [5.0, 0.0, 5.0, 0.0]


OPERATORS = [
    operator.add,
    operator.mul,
    operator.floordiv,
    operator.mod,
    operator.rshift,
    operator.lshift,
    operator.and_,
    operator.lt,
]


@pytest.mark.parametrize("scalar_device", [DEVICE, "cpu"])
@pytest.mark.parametrize("scalar_dtype", [torch.int64, torch.int32, torch.uint8])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.int8, torch.uint8])
@pytest.mark.parametrize("op", OPERATORS)
def test_55_integer_tensor_with_a_zero_dim_tensor_of_another_dtype(
    op, dtype, scalar_dtype, scalar_device
):
    """triton-ascend#472: `int tensor >> 0-dim int64 tensor` crashed."""
    x = torch.arange(1, 9).to(dtype)
    scalar = torch.tensor(2, dtype=scalar_dtype)
    assert_same(op(x.to(DEVICE), scalar.to(scalar_device)), op(x, scalar))
    assert_same(op(scalar.to(scalar_device), x.to(DEVICE)), op(scalar, x))


def test_56_compiled_dropout_draws_new_numbers_on_each_run_and_obeys_the_seed():
    """xla#4169, pytorch#107187, #118735: the same numbers in each compiled run; seed ignored."""
    x = torch.ones(1000, device=DEVICE)
    compiled = torch.compile(lambda x: F.dropout(x, 0.5), backend="aot_eager")
    torch.manual_seed(5)
    first, second = compiled(x), compiled(x)
    torch.manual_seed(5)
    again = compiled(x)
    assert not torch.equal(first, second)
    assert torch.equal(first, again)
    torch.manual_seed(5)
    assert torch.equal(F.dropout(x, 0.5), first)


def test_56_checkpointing_draws_the_same_mask_twice():
    """pytorch#181136 and kin: the recomputation in backward must see the forward's numbers."""
    x = torch.ones(1000, device=DEVICE, requires_grad=True)
    y = checkpoint(lambda x: F.dropout(x, 0.5) * x, x, use_reentrant=False)
    y.sum().backward()
    # y = m x^2 / 0.5, its gradient 2 m x / 0.5: both show the mask m.
    assert torch.equal((x.grad != 0), (y != 0))


INFERENCE = [
    lambda x: x.add_(1),
    lambda x: x.mul_(2).relu_(),
    lambda x: x[1:].fill_(3),
    lambda x: x.t().zero_(),
    lambda x: x.view(-1)[2:].neg_(),
    lambda x: x @ x.t(),
    lambda x: torch.cat([x, x]).sort(),
    lambda x: x.masked_select(x > 0),
    lambda x: torch.add(x, x, out=torch.empty_like(x)),
    lambda x: nn.BatchNorm1d(3, device=x.device)(x),
    lambda x: F.layer_norm(x, (3,)),
    lambda x: x.copy_(x + 1),
    lambda x: x.clone().index_put_((torch.tensor([0], device=x.device),), x[1]),
]


@pytest.mark.parametrize("function", INFERENCE)
def test_57_ops_inside_inference_mode(function):
    """DirectML#602, #450, #622: "Cannot set version_counter for inference tensor"."""
    with torch.inference_mode():
        ours, theirs = on_both(lambda x: function(x.clone()), randn(4, 3).abs()[:3])
        assert_same(ours, theirs, truth=lambda: function(randn(4, 3).abs()[:3].double()))


def test_57_printing_needs_no_gradient_and_no_special_op():
    """DirectML#242, #306: printing needed masked_select, which was missing."""
    x = torch.tensor([1.5, torch.nan, torch.inf], device=DEVICE)
    with torch.inference_mode():
        text = repr(x)
    assert text.startswith("tensor([1.5000,    nan,    inf]")


@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.uint16, torch.uint32, torch.int8, torch.int32]
)
def test_58_shifts_and_divisions_of_large_and_negative_integers(dtype):
    """FlagTree#1121: `>>` of an unsigned integer was arithmetic."""
    limits = torch.iinfo(dtype)
    values = torch.tensor([limits.max, limits.max - 7, limits.min, 5, 1]).to(dtype)
    if dtype in (torch.uint16, torch.uint32):
        # Plain PyTorch has few ops for these: what it has must agree, what it lacks must raise.
        for function in (lambda x: x.to(torch.int64) >> 1, lambda x: x == x, lambda x: x.clone()):
            assert_same(*on_both(function, values))
        with pytest.raises(NotImplementedError):
            values >> 1
        with pytest.raises(NotImplementedError):
            values.to(DEVICE) >> 1
        return
    for function in (
        lambda x: x >> 1,
        lambda x: (x >> 1) << 1,
        lambda x: x // 3,
        lambda x: x % 3,
        lambda x: torch.fmod(x, 3),
        lambda x: torch.div(x, 3, rounding_mode="trunc"),
    ):
        assert_same(*on_both(function, values))
    if dtype.is_signed:
        assert_same(*on_both(lambda x: (x // -3, x % -3, torch.fmod(x, -3)), values))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 1,
        lambda x: x.sort(),
        lambda x: x.nonzero(),
        lambda x: torch.fft.rfft(x),
        lambda x: F.conv1d(x[None], torch.ones(1, 4, 1, device=x.device)),
        lambda x: x @ x.t(),
        lambda x: F.softmax(x, -1),
    ],
)
def test_59_every_op_runs_under_autocast(function):
    """Without a fallthrough for the autocast key no op can run inside autocast."""
    x = randn(4, 6)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        ours = function(x.to(DEVICE))
    assert all(t.device.type == DEVICE for t in (ours if isinstance(ours, tuple) else (ours,)))


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_59_recurrent_layers_have_their_cells(name):
    """The fused cells of non-CPU devices have no CPU kernel to fall back on."""
    torch.manual_seed(0)
    layer = getattr(nn, name)(4, 6, num_layers=2, bidirectional=True)
    x = randn(5, 2, 4)
    expected, _ = layer(x)
    expected.sum().backward()
    grads = [p.grad.clone() for p in layer.parameters()]
    layer.zero_grad()
    layer.to(DEVICE)
    actual, _ = layer(x.to(DEVICE))
    actual.sum().backward()
    torch.testing.assert_close(actual.cpu(), expected)
    for parameter, grad in zip(layer.parameters(), grads, strict=True):
        torch.testing.assert_close(parameter.grad.cpu(), grad)

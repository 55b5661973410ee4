"""Bugs that users of other out-of-tree devices reported, 29 to 45: views, strides, offsets."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from compare import assert_same
from ops.under_test import DEVICE, Placement


def on_both(function, *args):
    """The result on the device and on the CPU, of copies of the same arguments."""
    return function(*Placement()(args)), function(*Placement("cpu")(args))


def randn(*shape):
    torch.manual_seed(sum(shape))
    return torch.randn(*shape)


@pytest.mark.parametrize("name", ["addcdiv_", "addcmul_"])
def test_29_pointwise_in_place_on_a_tensor_that_is_not_contiguous(name):
    """pytorch#118115: addcdiv_ left a non-contiguous tensor unchanged."""
    x = randn(6, 4)
    numerator, denominator = randn(4, 6), randn(4, 6).abs() + 1

    def function(x, a, b):
        getattr(x.t(), name)(a, b, value=0.5)
        return x

    ours, theirs = on_both(function, x, numerator, denominator)
    assert_same(ours, theirs)
    assert not torch.equal(theirs, x)


OPTIMIZERS = ["Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop"]


@pytest.mark.parametrize("name", [*OPTIMIZERS, "Rprop", "SGD", "ASGD"])
def test_30_optimizers_update_transposed_parameters(name):
    """pytorch#118117: Rprop did not update a parameter that is not contiguous."""

    def function(p):
        p = p.t().requires_grad_()
        optimizer = getattr(torch.optim, name)([p], lr=0.1)
        for step in range(3):
            p.grad = torch.full_like(p, 0.1 * (step + 1))
            optimizer.step()
        return p.detach()

    x = randn(3, 5)
    ours, theirs = on_both(function, x)
    assert_same(ours, theirs, truth=lambda: function(x.double()))
    assert not torch.equal(theirs, x.t())


def test_31_isfinite_of_a_column_writes_only_its_own_memory():
    """pytorch#183419: isfinite on a column slice wrote out of bounds."""
    x = randn(8, 5)
    x[2, 3], x[5, 3] = torch.inf, torch.nan

    def function(x):
        before = x.clone()
        guard = torch.full((64,), 7, dtype=torch.uint8, device=x.device)
        return x[:, 3].isfinite(), torch.equal(x.nan_to_num(), before.nan_to_num()), guard

    assert_same(*on_both(function, x))


def test_32_stack_of_slices_with_an_offset():
    """pytorch#91071: slices at a storage offset were stacked from offset 0."""
    assert_same(*on_both(lambda x: torch.stack([x[1:3], x[2:4]]), randn(5, 3)))
    assert_same(*on_both(lambda x: torch.stack([x[0, 1:], x[1, :-1]], dim=1), randn(3, 4)))


@pytest.mark.parametrize("name", ["erfinv", "tanh", "erf", "lgamma", "exp", "round", "sigmoid"])
def test_33_unary_ops_of_a_slice_with_an_offset(name):
    """pytorch#105801: erfinv ignored the storage offset."""
    function = getattr(torch, name)
    assert_same(
        *on_both(lambda x: function(x[3:]), torch.linspace(-0.9, 0.9, 11)),
        truth=lambda: function(torch.linspace(-0.9, 0.9, 11).double()[3:]),
    )


def test_34_in_place_on_one_row_and_out_that_is_not_contiguous():
    """pytorch#97085: `x[1].tanh_()` changed nothing or the wrong row."""

    def row(x):
        x[1].tanh_()
        return x

    def transposed_out(x):
        out = torch.zeros(4, 3, dtype=x.dtype, device=x.device).t()
        torch.tanh(x, out=out)
        return out

    x = randn(3, 4)
    assert_same(*on_both(row, x), truth=lambda: row(x.double()))
    assert_same(*on_both(transposed_out, x), truth=lambda: transposed_out(x.double()))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.t().clamp(-0.5, 0.5),
        lambda x: x.t().clamp(min=torch.zeros(4, 3, device=x.device)),
        lambda x: x.t().masked_fill(x.t() > 0, 0.0),
        lambda x: x.t().masked_fill_(x.t() > 0, 0.0),
        lambda x: x[:, ::2].clamp_(-0.1, 0.1),
        lambda x: x.unsqueeze(0).to(memory_format=torch.contiguous_format).mT.clamp(0),
        lambda x: torch.where(x.t() > 0, x.t(), 0.0),
    ],
)
def test_35_outputs_have_the_strides_of_the_cpu(function):
    """pytorch#110120: clamp and masked_fill_ gave wrong output strides."""
    assert_same(*on_both(function, randn(3, 4)))


@pytest.mark.parametrize("operation", ["masked_fill_", "index_put_", "add_"])
def test_36_writing_through_an_expanded_tensor_does_what_the_cpu_does(operation):
    """pytorch#12230: masked_fill_ is allowed with a warning, others are refused."""

    def function(x):
        wide = x.expand(4, 3)
        mask = torch.tensor([[True, False, True]], device=x.device).expand(4, 3)
        try:
            if operation == "masked_fill_":
                wide.masked_fill_(mask, 1.0)
            elif operation == "index_put_":
                wide.index_put_((mask,), torch.ones((), device=x.device))
            else:
                wide.add_(1.0)
        except RuntimeError as error:
            return str(error)
        return x

    ours, theirs = on_both(function, torch.zeros(3))
    assert isinstance(theirs, str) == (operation == "add_")
    assert_same(ours, theirs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("offset", [0, 1, 997])
def test_37_products_and_attention_at_an_odd_storage_offset(offset, dtype):
    """torch-xpu-ops#1656: kernels that need aligned memory gave wrong results."""
    buffer = randn(offset + 3 * 2 * 16 * 32).to(dtype)

    def parts(x):
        return x[offset:].view(3, 2, 16, 32).unbind()

    def attention(x):
        return F.scaled_dot_product_attention(*(t.unsqueeze(0) for t in parts(x)))

    def product(x):
        q, k, _ = parts(x)
        return q @ k.mT

    for function in (attention, product):
        assert_same(*on_both(function, buffer), truth=lambda f=function: f(buffer.double()))


def test_38_a_product_of_more_than_two_to_the_32_elements_by_expansion():
    """pytorch#197636: an index overflowed; the expansion keeps memory small."""
    batches = (1 << 32) // (64 * 64) + 5
    a = randn(64, 64).to(DEVICE).expand(batches, 64, 64)
    assert a.numel() > 1 << 32
    b = randn(64, 1)
    last = a[-3:].cpu()
    columns = torch.bmm(a[-3:], b.to(DEVICE).expand(3, 64, 1))
    assert_same(
        columns,
        torch.bmm(last, b.expand(3, 64, 1).clone()),
        truth=lambda: torch.bmm(last.double(), b.double().expand(3, 64, 1)),
    )
    assert a[-1, -1, -1].item() == a[0, -1, -1].item()
    wide = torch.ones(1, dtype=torch.int8, device=DEVICE).expand(1 << 31, 3)
    assert wide[:, 1].stride() == (0,)
    assert wide[(1 << 31) - 2 :].sum().item() == 6


def test_39_assigning_data_leaves_views_of_the_old_data_alone():
    """xla#3392: `x.data = x.data + 1` updated views of x."""

    def function(x):
        view = x[1:]
        x.data = x.data + 1
        return x, view

    assert_same(*on_both(function, torch.arange(4.0)))


def test_40_split_outputs_alias_their_input():
    """xla#3072: writes into a split part did not reach the whole."""

    def function(x):
        first, second = x.split(2)
        first.fill_(7)
        x[3] = 9
        left, right = x.chunk(2)
        left[0] += 1
        a, b = torch.tensor_split(x, 2)
        b.mul_(2)
        return x, first, second, left, right, a

    assert_same(*on_both(function, torch.arange(4.0)))


def test_41_gradients_after_a_slice_was_overwritten():
    """xla#1718: `x[:, :n] = 0` and then backward gave wrong gradients."""

    def function(w):
        w = w.requires_grad_()
        x = w * 2
        x[:, :3] = 0
        (x * x).sum().backward()
        return w.grad

    assert_same(*on_both(function, randn(4, 5)))


def test_42_creating_a_view_keeps_the_data():
    """xla#3488: a new view cleared data that had been computed."""

    def function(x):
        y = x * 2
        views = [y[i] for i in range(3)] + [y.t(), y.view(-1), y.diagonal()]
        y.add_(1)
        return y, views

    assert_same(*on_both(function, randn(3, 3)))


def test_43_gradients_accumulate_into_the_same_memory():
    """xla#7174: gradient accumulation lost the aliasing of .grad."""
    w = torch.ones(3, device=DEVICE, requires_grad=True)
    (w * 2).sum().backward()
    grad, address = w.grad, w.grad.data_ptr()
    for _ in range(3):
        (w * 2).sum().backward()
    assert w.grad is grad
    assert w.grad.data_ptr() == address
    assert grad.tolist() == [8.0] * 3
    flat = torch.zeros(6, device=DEVICE)
    w.grad = flat[:3]
    (w * 2).sum().backward()
    assert flat.tolist() == [2.0] * 3 + [0.0] * 3


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.permute(2, 0, 1).contiguous(),
        lambda x: x.permute(2, 0, 1).reshape(-1),
        lambda x: x.permute(1, 0, 2).reshape(12, 5),
        lambda x: x[:, ::2].reshape(-1),
        lambda x: x[..., 1:].contiguous().view(-1),
        lambda x: x.unsqueeze(1).expand(3, 2, 4, 5).reshape(6, 4, 5),
        lambda x: x.unsqueeze(0).contiguous(memory_format=torch.channels_last),
        lambda x: x.mT.flatten(1),
        lambda x: x.flip(1).contiguous(),
        lambda x: x.permute(2, 1, 0).clone(),
        lambda x: x.permute(2, 1, 0).clone(memory_format=torch.contiguous_format),
    ],
)
def test_44_contiguous_and_reshape_of_permuted_tensors(function):
    """torch-spyre#1398, #1689, #1697, #1919: layouts leaked into contiguous and reshape."""
    assert_same(*on_both(function, randn(3, 4, 5)))


@pytest.mark.parametrize(
    "dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
)
def test_45_an_element_of_every_integer_dtype(dtype):
    """optimum-habana#961: `torch.arange(n)[i]` gave the value at the wrong element size."""
    expected = torch.arange(7).to(dtype)
    x = torch.arange(7, device=DEVICE).to(dtype)
    assert [x[i].item() for i in range(7)] == expected.tolist()
    assert x[2:].tolist() == expected[2:].tolist()
    assert x[torch.tensor([6, 0], device=DEVICE)].tolist() == expected[[6, 0]].tolist()
    assert x[1::2].tolist() == expected[1::2].tolist()

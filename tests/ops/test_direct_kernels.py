"""Direct kernels give the CPU's bits, and hand over what they do not take."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import torch_neuronx

aten = torch.ops.aten
FLOATS = (torch.float32, torch.bfloat16, torch.float16)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def on_neuron(value: object) -> object:
    """Tensors, also inside lists, moved to neuron; anything else as it is."""
    if isinstance(value, Tensor):
        return value.to("neuron")
    if isinstance(value, list):
        return [on_neuron(item) for item in value]
    return value


def assert_same_bits(run: Callable[..., object], *operands: object) -> None:
    """`run` gives on neuron what it gives on the CPU: metadata and every bit."""
    moved = [on_neuron(operand) for operand in operands]
    expected = run(*operands)
    actual = run(*moved)
    if isinstance(expected, Tensor):
        expected, actual = [expected], [actual]
    assert isinstance(expected, list | tuple)
    assert isinstance(actual, list | tuple)
    for want, got in zip(expected, actual, strict=True):
        assert got.device.type == "neuron"
        back = got.cpu()
        assert (back.dtype, back.shape, back.stride()) == (want.dtype, want.shape, want.stride())
        assert torch.equal(torch.isnan(back), torch.isnan(want))
        assert torch.equal(torch.nan_to_num(back), torch.nan_to_num(want))


def ran_directly(name: str, run: Callable[[], object]) -> bool:
    """Whether `run` executed `name` and nothing else."""
    torch_neuronx.clear_op_tracking()
    run()
    return set(torch_neuronx.get_executed_ops()) == {name}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "function",
    [
        torch.neg,
        torch.abs,
        torch.exp,
        torch.log,
        torch.sqrt,
        torch.reciprocal,
        torch.relu,
        torch.square,
    ],
    ids=lambda function: function.__name__,
)
def test_function_matches_the_cpu(function: Callable[..., object], dtype: torch.dtype) -> None:
    x = torch.randn(4096).to(dtype) * 3
    x[:6] = torch.tensor([0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1e-40])
    assert_same_bits(function, x)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("function", [torch.sigmoid, functional.silu, torch.rsqrt])
def test_function_matches_the_cpu_on_whole_vectors(
    function: Callable[..., object], dtype: torch.dtype
) -> None:
    # The CPU computes what is left of a vector with libm, we do not.
    assert_same_bits(function, torch.randn(64, 64).to(dtype).abs() + 0.1)


@pytest.mark.parametrize("dtype", FLOATS)
def test_tanh_is_as_exact_as_its_dtype_allows(dtype: torch.dtype) -> None:
    x = torch.cat([torch.linspace(-12, 12, 100001), torch.logspace(-38, 2, 4001)]).to(dtype)
    exact = torch.tanh(x.double())
    error = (torch.tanh(x.to("neuron")).cpu().double() - exact).abs()
    # Units in the last place: the spacing of the dtype at the result.
    exponent = torch.frexp(exact.abs().clamp_min(torch.finfo(dtype).smallest_normal)).exponent
    spacing = torch.finfo(dtype).eps * torch.ldexp(torch.ones(()).double(), exponent - 1)
    assert (error / spacing).max() <= (1.5 if dtype is torch.float32 else 0.51)


@pytest.mark.parametrize("dtype", FLOATS)
def test_tanh_keeps_signs_infinities_and_nan(dtype: torch.dtype) -> None:
    special = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-7, -1e-7]
    assert_same_bits(torch.tanh, torch.tensor(special, dtype=dtype).repeat(8))


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_is_as_exact_as_fp32_allows(approximate: str) -> None:
    x = torch.linspace(-8, 8, 10001)
    exact = functional.gelu(x.double(), approximate=approximate)
    got = functional.gelu(x.to("neuron"), approximate=approximate).cpu()
    assert (got - exact).abs().max() <= 2e-6


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float64, torch.int64, torch.int32])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize(
    "shapes",
    [
        ((8, 12), (8, 12)),
        ((8, 12), (12,)),
        ((12,), (8, 12)),
        ((8, 12), (8, 1)),
        ((8, 1), (8, 12)),
        ((8, 12), ()),
        ((2, 8, 12), (8, 12)),
        ((2, 8, 12), (2, 1, 12)),
        ((0, 12), (12,)),
    ],
    ids=str,
)
def test_operator_matches_the_cpu(
    name: str, shapes: tuple[tuple[int, ...], tuple[int, ...]], dtype: torch.dtype
) -> None:
    a, b = ((torch.randn(shape) * 4).to(dtype) for shape in shapes)
    assert_same_bits(getattr(torch, name), a, b)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64])
@pytest.mark.parametrize("number", [2, -3, 0.1, True])
@pytest.mark.parametrize("name", ["add", "mul", "div", "eq", "lt"])
def test_operator_with_a_number_matches_the_cpu(
    name: str, number: float, dtype: torch.dtype
) -> None:
    # 1024 elements: the CPU rounds numbers otherwise in what is left of a vector.
    assert_same_bits(getattr(torch, name), (torch.randn(1024) * 4).to(dtype), number)


@pytest.mark.parametrize("name", ["threshold", "sigmoid", "tanh"])
def test_backward_of_a_function_matches_the_cpu(name: str) -> None:
    gradient, saved = torch.randn(64, 64), torch.rand(64, 64) * 2 - 1
    rest = (0,) if name == "threshold" else ()
    assert_same_bits(getattr(aten, f"{name}_backward"), gradient, saved, *rest)


def test_writing_over_an_overlapping_view_raises_as_on_the_cpu() -> None:
    x = torch.randn(10, device="neuron")
    with pytest.raises(RuntimeError, match="single memory location"):
        x[1:].add_(x[:-1])


def test_another_device_is_named_in_the_error() -> None:
    with pytest.raises(RuntimeError, match="two devices"):
        torch.randn(3, device="neuron") + torch.randn(3)


def test_out_of_another_size_is_resized() -> None:
    a = torch.randn(5, device="neuron")
    out = torch.empty(0, device="neuron")
    torch.add(a, a, out=out)
    assert torch.equal(out.cpu(), a.cpu() * 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_matrix_product_matches_the_cpu(dtype: torch.dtype) -> None:
    def random(*sizes: int) -> Tensor:
        return (torch.randn(sizes) * 4).to(dtype)

    assert_same_bits(torch.mm, random(33, 17), random(17, 65))
    assert_same_bits(lambda a, b: a.t() @ b.t(), random(17, 33), random(65, 17))
    assert_same_bits(lambda a, b: a[:, ::2] @ b[::3], random(9, 10), random(15, 4))
    assert_same_bits(torch.mm, random(3, 0), random(0, 4))
    assert_same_bits(torch.addmm, random(65), random(33, 17), random(17, 65))
    assert_same_bits(torch.bmm, random(3, 9, 5), random(3, 5, 7))
    assert_same_bits(functional.linear, random(6, 5, 17), random(9, 17), random(9))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_product_rounds_the_fp32_product_once(dtype: torch.dtype) -> None:
    a, b = torch.randn(40, 64).to(dtype), torch.randn(64, 24).to(dtype)
    exact = a.double() @ b.double()
    got = (a.to("neuron") @ b.to("neuron")).cpu().double()
    # Half a unit in the last place, and what fp32 sums of 64 products may lose.
    assert ((got - exact).abs() <= exact.abs() * torch.finfo(dtype).eps * 0.51 + 1e-4).all()


def test_linear_without_gradients_is_one_op() -> None:
    x, w = torch.randn(4, 8, device="neuron"), torch.randn(3, 8, device="neuron")
    with torch.no_grad():
        assert ran_directly("aten::linear", lambda: functional.linear(x, w))
    w.requires_grad_()
    assert "Mm" in type(functional.linear(x, w).grad_fn).__name__


def test_linear_has_forward_mode_and_batched_derivatives() -> None:
    x, w = torch.randn(4, 8), torch.randn(3, 8)

    def tangent(x: Tensor, w: Tensor) -> Tensor:
        return torch.func.jvp(lambda value: functional.linear(value, w), (x,), (x,))[1]

    assert_same_bits(tangent, x, w)
    assert_same_bits(lambda x, w: torch.func.vmap(lambda r: functional.linear(r, w))(x), x[None], w)


@pytest.mark.parametrize("sizes", [(8, 8), (5, 33), (32, 4), (100, 7), (2, 3, 130), (64,), (7, 1)])
@pytest.mark.parametrize("name", ["sum", "mean", "amax"])
def test_reduction_adds_in_the_cpus_order(name: str, sizes: tuple[int, ...]) -> None:
    reduce = getattr(torch, name)
    x = torch.randn(sizes)
    assert_same_bits(reduce, x)
    for dim in range(len(sizes)):
        assert_same_bits(lambda x, dim=dim: reduce(x, dim), x)
        assert_same_bits(lambda x, dim=dim: reduce(x, dim, keepdim=True), x)


@pytest.mark.parametrize("sizes", [(8, 8), (5, 33), (3, 100), (2, 3, 130), (64,)])
def test_softmax_matches_the_cpu(sizes: tuple[int, ...]) -> None:
    x, gradient = torch.randn(sizes) * 3, torch.randn(sizes)
    for function in (torch.softmax, torch.log_softmax):
        assert_same_bits(lambda x, function=function: function(x, -1), x)
        saved = function(x, -1)
        backward = getattr(aten, f"_{function.__name__}_backward_data")
        assert_same_bits(
            lambda g, y, backward=backward: backward(g, y, -1, torch.float32), gradient, saved
        )


def test_softmax_of_infinities_matches_the_cpu() -> None:
    x = torch.randn(4, 70)
    x[1] = float("-inf")
    x[2, 3] = float("nan")
    x[3, 2] = float("inf")
    assert_same_bits(lambda x: torch.softmax(x, -1), x)
    assert_same_bits(lambda x: torch.log_softmax(x, -1), x)


@pytest.mark.parametrize("columns", [1, 8, 33, 130, 257])
def test_layer_norm_matches_the_cpu(columns: int) -> None:
    x, weight, bias = torch.randn(6, columns), torch.randn(columns), torch.randn(columns)
    assert_same_bits(
        lambda x, w, b: aten.native_layer_norm(x, [columns], w, b, 1e-5), x, weight, bias
    )


@pytest.mark.parametrize("columns", [1, 8, 33, 257])
def test_layer_norm_gradients_are_close_to_fp64(columns: int) -> None:
    x, weight, bias = torch.randn(6, columns), torch.randn(columns), torch.randn(columns)
    upstream = torch.randn(6, columns)

    def gradients(*values: Tensor) -> list[Tensor]:
        leaves = [value.detach().requires_grad_() for value in values[:3]]
        functional.layer_norm(leaves[0], (columns,), leaves[1], leaves[2]).backward(values[3])
        return [leaf.grad.cpu().double() for leaf in leaves if leaf.grad is not None]

    exact = gradients(*(value.double() for value in (x, weight, bias, upstream)))
    got = gradients(*(value.to("neuron") for value in (x, weight, bias, upstream)))
    for want, have in zip(exact, got, strict=True):
        torch.testing.assert_close(have, want, rtol=1e-4, atol=1e-4)


def test_indexing_matches_the_cpu() -> None:
    table, index = torch.randn(6, 3), torch.randint(0, 6, (4, 5))
    assert_same_bits(lambda t, i: functional.embedding(i, t), table, index)
    assert_same_bits(lambda t, i: t[i - 6], table, index)
    assert_same_bits(lambda t, i: torch.index_select(t, 0, i), table, index[0])
    assert_same_bits(lambda t, i: torch.gather(t.t(), 1, i[:3]), table, index)
    assert_same_bits(
        lambda t, i: torch.gather(t, 1, i), torch.randn(4, 6), torch.randint(0, 6, (4, 9))
    )


@pytest.mark.parametrize(
    "run",
    [
        lambda t, i: functional.embedding(i, t),
        lambda t, i: t[i],
        lambda t, i: torch.index_select(t, 0, i),
        lambda t, i: torch.gather(t, 1, i[None].expand(6, 2)),
        lambda t, i: functional.nll_loss(t[:2], i),
    ],
    ids=["embedding", "index", "index_select", "gather", "nll_loss"],
)
def test_index_out_of_range_raises_as_on_the_cpu(run: Callable[..., object]) -> None:
    table, index = torch.randn(6, 3), torch.tensor([1, 17])
    with pytest.raises((IndexError, RuntimeError)) as on_cpu:
        run(table, index)
    with pytest.raises(on_cpu.type, match="17"):
        run(table.to("neuron"), index.to("neuron"))


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.bool])
def test_joins_fills_and_casts_match_the_cpu(dtype: torch.dtype) -> None:
    a, b = (torch.randn(3, 4).to(dtype) for _ in range(2))
    mask = torch.rand(3, 4) > 0.5
    assert_same_bits(lambda a, b: torch.cat([a, b, a], 0), a, b)
    assert_same_bits(lambda a, b: torch.cat([a, b], 1), a, b)
    assert_same_bits(lambda a, b: torch.stack([a, b], 1), a, b)
    assert_same_bits(torch.where, mask, a, b)
    assert_same_bits(lambda a, m: a.masked_fill(m, 1), a, mask)
    assert_same_bits(lambda a: a.clone().fill_(1), a)
    assert_same_bits(lambda a: a.clone().zero_(), a)
    assert_same_bits(lambda a: a.t().clone(), a)
    for target in (*FLOATS, torch.int64, torch.bool):
        assert_same_bits(lambda a, target=target: a.to(target), a)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("rows", [4, 17, 1000])
def test_nll_loss_matches_the_cpu(reduction: str, rows: int) -> None:
    scores = torch.randn(rows, 7).log_softmax(-1)
    target = torch.randint(7, (rows,))
    target[::3] = -100
    assert_same_bits(lambda s, t: functional.nll_loss(s, t, reduction=reduction), scores, target)


@pytest.mark.parametrize("dtype", FLOATS)
def test_list_ops_match_the_cpu(dtype: torch.dtype) -> None:
    def tensors() -> list[Tensor]:
        return [torch.randn(size).to(dtype) for size in (1024, 64, 5)]

    positive = [tensor.abs() + 0.1 for tensor in tensors()]

    def check(run: Callable[..., object], *lists: list[Tensor]) -> None:
        def changed(*given: list[Tensor]) -> list[Tensor]:
            copies = [tensor.clone() for tensor in given[0]]
            run(copies, *given[1:])
            return copies

        assert_same_bits(changed, *lists)

    check(lambda a: torch._foreach_mul_(a, 0.9), tensors())
    check(lambda a: torch._foreach_add_(a, 0.3), tensors())
    check(lambda a: torch._foreach_div_(a, [0.3, 0.7, 1.1]), tensors())
    check(lambda a, b: torch._foreach_lerp_(a, b, 0.1), tensors(), tensors())
    check(lambda a, b, c: torch._foreach_addcmul_(a, b, c, 0.01), tensors(), tensors(), tensors())
    check(lambda a, b, c: torch._foreach_addcdiv_(a, b, c, -0.01), tensors(), tensors(), positive)
    check(torch._foreach_sqrt_, positive)
    check(torch._foreach_zero_, tensors())


@pytest.mark.parametrize("options", [{}, {"foreach": True}, {"fused": True}], ids=str)
def test_training_with_adamw_matches_the_cpu(options: dict[str, bool]) -> None:
    inputs, labels = torch.randn(32, 8), torch.randint(4, (32,))

    def trained(device: str, options: dict[str, bool]) -> list[Tensor]:
        torch.manual_seed(1)
        model = torch.nn.Sequential(
            torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)
        ).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, **options)
        for _ in range(10):
            optimizer.zero_grad()
            functional.cross_entropy(model(inputs.to(device)), labels.to(device)).backward()
            optimizer.step()
        return [parameter.detach().cpu() for parameter in model.parameters()]

    # The CPU's default is the loop over tensors, ours the list ops.
    for want, got in zip(trained("cpu", options), trained("neuron", options), strict=True):
        if options.get("fused"):  # one pass of ours, which divides once instead of twice
            torch.testing.assert_close(got, want, rtol=2e-6, atol=1e-7)
        else:
            assert torch.equal(want, got)


def test_direct_kernels_run_in_order_on_another_stream() -> None:
    stream = torch.neuron.Stream()
    x = torch.ones(64, 64, device="neuron")
    torch.neuron.synchronize()
    with torch.neuron.stream(stream):
        for _ in range(200):
            x = x * 2
            x = torch.relu(x - x / 2)
        total = (x @ x).sum()
    stream.synchronize()
    # Each turn gives x back: 64 x 64 ones, whose square has 64 everywhere.
    assert total.item() == 64 * 64 * 64


def test_nothing_is_counted_as_a_fallback() -> None:
    x = torch.randn(8, 8, device="neuron")
    torch_neuronx.clear_op_tracking()
    torch.softmax(x @ x + x, -1).sum()
    assert not torch_neuronx.get_fallback_ops()

"""Bugs that users of other out-of-tree devices reported, 11 to 18: ops without own kernels."""

from __future__ import annotations

import pytest
import torch

from compare import assert_same, host
from ops.under_test import DEVICE, Placement

FOREACH = [
    "_foreach_add_",
    "_foreach_sub_",
    "_foreach_mul_",
    "_foreach_div_",
    "_foreach_clamp_min_",
    "_foreach_clamp_max_",
    "_foreach_maximum_",
    "_foreach_minimum_",
]
FOREACH_UNARY = [
    "_foreach_abs_",
    "_foreach_exp_",
    "_foreach_neg_",
    "_foreach_sqrt_",
    "_foreach_sigmoid_",
    "_foreach_zero_",
    "_foreach_reciprocal_",
    "_foreach_round_",
    "_foreach_tanh_",
]


def on_both(function, *args):
    """The result on the device and on the CPU, of copies of the same arguments."""
    theirs = function(*Placement("cpu")(args))
    ours = function(*Placement()(args))
    return ours, theirs


def mixed_tensors():
    torch.manual_seed(0)
    return [
        torch.rand(3, 2),
        torch.rand(0, 4),
        torch.rand(()),
        torch.rand(5)[::2],
        torch.rand(4).double(),
    ]


@pytest.mark.parametrize("scalar", [0.5, [0.5, 1.0, 2.0, 3.0, 4.0], "tensors"])
@pytest.mark.parametrize("name", FOREACH)
def test_11_foreach_in_place_changes_its_tensors(name, scalar):
    """pytorch#104965: the mutation of tensor lists was lost in the fallback."""
    tensors = mixed_tensors()
    other = [t + 0.25 for t in tensors] if scalar == "tensors" else scalar

    def function(tensors, other):
        getattr(torch, name)(tensors, other)
        return tensors

    ours, theirs = on_both(function, tensors, other)
    assert_same(ours, theirs)
    assert not torch.equal(theirs[0], tensors[0]) or "clamp" in name or "imum" in name


@pytest.mark.parametrize("name", FOREACH_UNARY)
def test_11_foreach_unary_in_place_changes_its_tensors(name):
    """pytorch#104965, the ops without a second argument."""

    def function(tensors):
        getattr(torch, name)(tensors)
        return tensors

    tensors = mixed_tensors()
    assert_same(*on_both(function, tensors), truth=lambda: function([t.double() for t in tensors]))


@pytest.mark.parametrize("value", [0.5, [0.1, 0.2]])
@pytest.mark.parametrize("name", ["_foreach_addcmul_", "_foreach_addcdiv_"])
def test_11_foreach_pointwise_in_place_changes_its_tensors(name, value):
    """pytorch#104965, the ops of optimizers."""
    a, b, c = ([torch.rand(3, 2) + 1, torch.rand(4) + 1] for _ in range(3))

    def function(a, b, c):
        getattr(torch, name)(a, b, c, value)
        return a

    assert_same(*on_both(function, a, b, c))


INDEX = torch.tensor([2, 0, 2])
MASK = torch.tensor([True, False, True, True])


@pytest.mark.parametrize("index_device", ["same", "cpu"])
@pytest.mark.parametrize(
    "pick",
    [
        lambda x, i, m: x[i],
        lambda x, i, m: x[:, None, i],
        lambda x, i, m: x[..., i],
        lambda x, i, m: x[m],
        lambda x, i, m: x[:, i, i],
        lambda x, i, m: x[i, :, i],
        lambda x, i, m: x[None, i, 1:],
        lambda x, i, m: x[m, 0],
    ],
)
def test_12_indexing_with_none_and_with_cpu_indices(pick, index_device):
    """pytorch#102081: optional tensors of a list were not converted."""
    x = torch.arange(64.0).reshape(4, 4, 4)
    place = Placement()
    index, mask = (INDEX, MASK) if index_device == "cpu" else (place(INDEX), place(MASK))
    assert_same(pick(place(x), index, mask), pick(x, INDEX, MASK))


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("index_device", ["same", "cpu"])
def test_12_index_put_with_none_and_with_cpu_indices(index_device, accumulate):
    """pytorch#102081, the writing side."""
    x = torch.arange(64.0).reshape(4, 4, 4)
    values = torch.arange(3.0).add(100)
    index = torch.tensor([2, 0, 1])
    place = Placement()
    expected = torch.ops.aten.index_put(x, [None, None, index], values, accumulate)
    there = index if index_device == "cpu" else place(index)
    actual = torch.ops.aten.index_put(place(x), [None, None, there], place(values), accumulate)
    assert_same(actual, expected)
    y = place(x)
    y[:, there] = place(values)[None, :, None]
    expected = x.clone()
    expected[:, index] = values[None, :, None]
    assert_same(y, expected)


EMPTIES = [
    [torch.ones(0), torch.ones(2, 3), torch.ones(0, 3)],
    [torch.ones(0), torch.ones(0)],
    [torch.ones(2, 0), torch.ones(2, 3)],
    [torch.ones(2, 3, dtype=torch.int32), torch.ones(1, 3)],
]


@pytest.mark.parametrize("tensors", EMPTIES)
def test_13_joining_tensors_some_of_them_empty(tensors):
    """pytorch#60902: torch.cat of a list crashed in the fallback."""
    dim = 1 if tensors[0].shape == (2, 0) else 0
    assert_same(*on_both(lambda ts: torch.cat(ts, dim), tensors))
    assert_same(*on_both(lambda ts: torch.block_diag(*(t for t in ts if t.dim() == 2)), tensors))


def test_13_stacking_empty_tensors():
    """pytorch#60902, torch.stack."""
    assert_same(*on_both(torch.stack, [torch.ones(0, 3), torch.ones(0, 3)]))


OUTS = {
    "empty": lambda shape: torch.empty(0),
    "too large": lambda shape: torch.ones(*shape, 2),
    "not contiguous": lambda shape: torch.ones(*shape[::-1]).t(),
    "every second": lambda shape: torch.ones(*shape, 2)[..., 0],
    "fits": lambda shape: torch.ones(shape),
}


@pytest.mark.parametrize("out", OUTS)
@pytest.mark.parametrize(
    "function",
    [
        lambda x, out: torch.mean(x, 2, out=out),
        lambda x, out: torch.sum(x, 2, out=out),
        lambda x, out: torch.add(x[..., 0], 1, out=out),
        lambda x, out: torch.matmul(x[..., 0], x[0, :3, :3], out=out),
        lambda x, out: torch.cat([x[:1, :, 0], x[1:, :, 0]], out=out),
        lambda x, out: torch.cumsum(x[..., 0], 0, out=out),
    ],
)
def test_14_out_of_any_shape_holds_the_result_and_stays_the_same_tensor(function, out):
    """pytorch#124151: a kernel that gave `out` new data left the caller with the old."""
    x = torch.arange(24.0).reshape(2, 3, 4)
    theirs, ours = OUTS[out]((2, 3)), Placement()(OUTS[out]((2, 3)))
    returned = function(Placement()(x), ours)
    function(x, theirs)
    assert returned is ours
    assert_same(ours, theirs, truth=lambda: function(x.double(), torch.empty(0).double()))


# Ops that decide metadata, not values: running them on the CPU instead would lose what they say.
MUST_BE_NATIVE = [
    "aten::_reshape_alias",
    "aten::as_strided",
    "aten::empty.memory_format",
    "aten::empty_strided",
    "aten::record_stream",
    "aten::resize_",
    "aten::set_.source_Storage",
    "aten::set_.source_Storage_storage_offset",
    "aten::set_.source_Tensor",
    "aten::unfold",
    "aten::view",
    "aten::view_as_complex",
    "aten::view_as_real",
    "aten::_local_scalar_dense",
    "aten::_copy_from",
    "aten::_copy_from_and_resize",
]


@pytest.mark.parametrize("name", MUST_BE_NATIVE)
def test_15_what_decides_metadata_has_its_own_kernel(name):
    """torch-xpu-ops#206: views, factories and resizing must not reach the fallback."""
    assert torch._C._dispatch_has_kernel_for_dispatch_key(name, "PrivateUse1")


def test_15_no_view_op_is_left_to_the_fallback():
    """torch-xpu-ops#206: each op that returns an alias is composite or has its own kernel."""
    missing = []
    for name in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = name.partition("::")
        packet, _, overload = rest.partition(".")
        if namespace != "aten" or packet.endswith("_copy") or not hasattr(torch.ops.aten, packet):
            continue
        op = getattr(getattr(torch.ops.aten, packet), overload or "default", None)
        if op is None or not op.is_view:
            continue
        has_kernel = any(
            torch._C._dispatch_has_kernel_for_dispatch_key(name, key)
            for key in ("PrivateUse1", "CompositeImplicitAutograd", "CompositeExplicitAutograd")
        )
        dense = torch._C._dispatch_has_kernel_for_dispatch_key(name, "CPU")
        if not has_kernel and dense:
            missing.append(name)
    assert missing == []


def test_16_the_ops_people_missed_exist():
    """pytorch#136302, pytorch_dlprim#97, #78: isin, any, gather, index_select were missing."""
    x = torch.arange(12).reshape(3, 4)
    index = torch.tensor([[0, 2], [1, 1], [3, 0]])
    assert_same(*on_both(torch.isin, x, torch.tensor([1, 5, 99])))
    assert_same(*on_both(lambda x: torch.any(x > 10, dim=1), x))
    assert_same(*on_both(lambda x, i: torch.gather(x, 1, i), x, index))
    assert_same(*on_both(lambda x, i: torch.index_select(x, 0, i), x, torch.tensor([2, 0])))


@pytest.mark.parametrize(
    "function",
    [
        lambda d, c: torch.dot(d, c),
        lambda d, c: torch.vdot(d, c),
        lambda d, c: torch.where(d > 0, d, c),
        lambda d, c: d + c,
        lambda d, c: torch.cat([d, c]),
        lambda d, c: torch.stack([d, c]),
        lambda d, c: d.copy_(c).add_(c),
        lambda d, c: torch.outer(d, c),
        lambda d, c: torch.add(c, c, out=d),
        lambda d, c: torch.gather(d, 0, torch.zeros(1, dtype=torch.int64)),
    ],
)
def test_17_two_devices_in_one_op_are_refused(function):
    """A fallback that copies each argument accepts mixed devices."""
    d, c = torch.ones(4, device=DEVICE), torch.ones(4)
    with pytest.raises(RuntimeError, match="device"):
        function(d, c)


def test_17_a_cpu_scalar_tensor_is_welcome():
    """The other side: 0-dim CPU tensors mix with any device."""
    x = torch.ones(3, device=DEVICE)
    assert (x + torch.tensor(2.0)).tolist() == [3.0] * 3
    assert (torch.tensor(2.0) * x).device == x.device
    assert torch.where(x > 0, x, torch.tensor(0.0)).tolist() == [1.0] * 3


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.cat([x[:2], x[1:3]], out=x[:4]),
        lambda x: torch.gather(x, 0, torch.zeros(4, dtype=torch.int64, device=x.device), out=x[:4]),
        lambda x: torch.index_select(x, 0, torch.arange(3, device=x.device), out=x[1:4]),
        lambda x: torch.masked_select(x, x > 0, out=x),
        lambda x: torch.take(x, torch.zeros(3, dtype=torch.int64, device=x.device), out=x[:3]),
        lambda x: torch.add(x[1:], 1, out=x[:-1]),
        lambda x: x[1:].mul_(x[:-1]),
        lambda x: x.expand(3, 8).add_(1),
    ],
)
def test_17_overlap_of_input_and_output_is_refused(function):
    """A fallback that copies each argument does not notice overlap."""
    with pytest.raises(RuntimeError) as theirs:
        function(torch.arange(8.0))
    with pytest.raises(RuntimeError) as ours:
        function(torch.arange(8.0, device=DEVICE))
    assert str(ours.value) == str(theirs.value)


COMPLEX = torch.complex(torch.arange(6.0), torch.arange(6.0).flip(0)).reshape(2, 3)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.conj().cpu(),
        lambda x: x.conj().clone(),
        lambda x: x.conj().resolve_conj(),
        lambda x: x.imag.neg(),
        lambda x: x.conj().imag.clone(),
        lambda x: x.conj().imag.resolve_neg(),
        lambda x: x.conj() @ x.t(),
        lambda x: x.mH @ x,
        lambda x: torch.fft.ihfft(x.real),
        lambda x: torch.fft.hfft(x),
        lambda x: torch.fft.fft(x.conj()),
        lambda x: x.conj().to(torch.complex128),
        lambda x: torch.empty_like(x).copy_(x.conj()),
        lambda x: torch.zeros(2, 3, device=x.device).copy_(x.conj().imag),
        lambda x: x.conj().contiguous().sum(),
        lambda x: torch.view_as_real(x.conj().resolve_conj()),
        lambda x: x.conj().mul_(2),
    ],
)
def test_18_lazy_conjugates_and_negatives_do_not_recurse(function):
    """A copy that keeps the lazy bits calls itself without end, one that drops them is wrong."""
    # A copy to the same device may keep the lazy bit, one to another device need not.
    assert_same(
        host(function(Placement()(COMPLEX))),
        host(function(COMPLEX.clone())),
        truth=lambda: host(function(COMPLEX.to(torch.complex128))),
    )

"""The comparison that the op tests rest on finds what it should find."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.testing._internal.common_methods_invocations import op_db

from compare import assert_same, farther_than
from ops.calls import Arguments, aliases, check_call, cotangent
from ops.catalogue import SAMPLED_ONE_IN, op_cases
from ops.under_test import DEVICE, Placement

X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@pytest.mark.parametrize(
    ("actual", "words"),
    [
        (X + 1e-3, "other bits"),
        (X.double(), "dtype"),
        (X[:, :2], "CPU torch.Size"),
        (X.t().contiguous().t(), "strides"),
        (X.clone().requires_grad_(), "requires_grad"),
        (X.to_sparse(), "layout"),
        (-torch._neg_view(X), "is_neg"),
        ([X], "where the CPU gives a tensor"),
        (3, "where the CPU gives a tensor"),
    ],
)
def test_a_difference_is_found_and_named(actual, words):
    if words == "is_neg":
        actual = torch._neg_view(-X)
    with pytest.raises(AssertionError, match=words):
        assert_same(actual, X)


def test_nan_equals_nan_and_zero_has_a_sign():
    assert_same(torch.tensor([torch.nan, 1.0]), torch.tensor([torch.nan, 1.0]))
    with pytest.raises(AssertionError, match="signs of zero"):
        assert_same(torch.tensor([-0.0]), torch.tensor([0.0]))
    with pytest.raises(AssertionError):
        assert_same(torch.tensor([torch.nan]), torch.tensor([1.0]))


def test_structure_is_compared():
    assert_same((X, {"a": [X, 2]}), (X, {"a": [X, 2]}))
    with pytest.raises(AssertionError, match="1 items, 2"):
        assert_same((X,), (X, X))
    with pytest.raises(AssertionError, match="CPU 2"):
        assert_same({"a": 3}, {"a": 2})


def test_the_truth_decides_where_bits_differ():
    exact = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64) / 3
    cpu = exact.float()
    # Half a unit in the last place off, on the other side than the CPU.
    near = torch.nextafter(cpu, torch.tensor(9.0))
    assert farther_than(near, cpu, exact) is None
    far = cpu * (1 + 1e-5)
    assert "farther" in (farther_than(far, cpu, exact) or "")
    assert farther_than(torch.full_like(cpu, torch.inf), cpu, exact) is not None
    # A CPU result that is 1e-5 off allows the device twice that, not more.
    assert farther_than(exact.float(), far, exact) is None
    assert farther_than(cpu * (1 + 1.9e-5), far, exact) is None
    assert farther_than(cpu * (1 + 3e-5), far, exact) is not None


def test_complex_and_low_precision_values_are_compared():
    z = torch.complex(torch.tensor([1.0]), torch.tensor([2.0]))
    with pytest.raises(AssertionError):
        assert_same(z, torch.complex(torch.tensor([1.0]), torch.tensor([2.5])))
    half = torch.tensor([1.0, 1.5], dtype=torch.bfloat16)
    with pytest.raises(AssertionError):
        assert_same(half, half + 0.125)


def device_is(tensor: Tensor) -> bool:
    """Whether this is the second of the two calls of `check_call`."""
    return tensor.device.type == torch.device(DEVICE).type != "cpu"


WRONG = {
    "a value": lambda x: x + 1 if device_is(x) else x * 1,
    "an argument written": lambda x: (x.add_(1), x * 0)[1] if device_is(x) else x * 0,
    "a copy where a view is due": lambda x: x.clone() if device_is(x) else x.view(2, 3),
    "an error": lambda x: x.view(7) if device_is(x) else x * 1,
    "no error": lambda x: x * 1 if device_is(x) else x.view(7),
}


@pytest.mark.skipif(DEVICE == "cpu", reason="the planted faults need two devices")
@pytest.mark.parametrize("fault", WRONG)
def test_a_planted_fault_of_the_device_is_found(fault):
    with pytest.raises(AssertionError):
        check_call(WRONG[fault], Arguments(args=(X,), kwargs={}))


def test_a_copy_keeps_strides_offset_sharing_and_lazy_bits():
    base = torch.arange(20).to(torch.complex64)
    given = [base[3:9].view(2, 3).t(), base[::2], base[:4].conj(), base.imag]
    copies = Placement(shift=2)(given)
    for original, copy in zip(given, copies, strict=True):
        assert copy.device.type == torch.device(DEVICE).type
        assert (copy.stride(), copy.is_conj(), copy.is_neg()) == (
            original.stride(),
            original.is_conj(),
            original.is_neg(),
        )
        assert torch.equal(copy.cpu(), original)
    assert copies[0].storage_offset() == 3 + 2
    copies[0].zero_()
    assert copies[1].cpu()[2].item() == 0  # element 4 of the base


def test_aliases_name_output_and_argument():
    given = Arguments(args=(X.clone(), X.clone()), kwargs={})
    assert aliases((given.args[1].t(), X + 1), given) == [(0, 1, True)]


def test_cotangents_differ_between_elements():
    assert len(set(cotangent(X).flatten().tolist())) == 6


def test_every_op_of_the_wheel_is_a_case_and_a_tenth_is_sampled():
    cases = op_cases("forward")
    names = {case.values[0].formatted_name for case in cases}
    with_dtype = {op.formatted_name for op in op_db if torch.float32 in op.supported_dtypes("cpu")}
    assert with_dtype <= names
    sampled = [case for case in cases if not any(mark.name == "sweep" for mark in case.marks)]
    assert 0.7 < len(sampled) * SAMPLED_ONE_IN / len(cases) < 1.3

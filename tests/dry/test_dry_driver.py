"""The dry driver: shapes without values, errors where values are needed, switching."""

from __future__ import annotations

import gc

import pytest
import torch

from python_process import run_python
from torch_neuronx.errors import DryValueError


@pytest.fixture
def dry():
    with torch.neuron.driver("dry"):
        yield


def test_nothing_is_committed(dry):
    def allocate() -> int:
        big = torch.empty(20 * 2**30, dtype=torch.uint8, device="neuron")
        big.fill_(1)
        return torch.neuron.memory_allocated()

    assert allocate() == 20 * 2**30


def test_out_of_memory_is_that_of_the_chip(dry):
    with pytest.raises(torch.OutOfMemoryError, match="modelled HBM"):
        torch.empty(30 * 2**30, dtype=torch.uint8, device="neuron")


@pytest.mark.parametrize(
    ("what", "op"),
    [
        (lambda t: t.sum().item(), "_local_scalar_dense"),
        (lambda t: bool(t.sum() > 0), "_local_scalar_dense"),
        (lambda t: t.cpu(), "copy_"),
        (lambda t: torch.equal(t, t), "equal"),
        (lambda t: t.nonzero(), "nonzero"),
        (lambda t: t[t > 0], "index.Tensor"),
        (lambda t: torch.unique(t), "_unique2"),
        (lambda t: torch.masked_select(t, t > 0), "masked_select"),
    ],
)
def test_a_value_is_refused_with_the_line_and_what_to_write(dry, what, op):
    with pytest.raises(DryValueError, match=op) as caught:
        what(torch.zeros(4, device="neuron"))
    assert "test_dry_driver.py:" in str(caught.value)
    assert "torch.neuron.dry_values" in str(caught.value)


def test_an_error_in_backward_names_the_line():
    done = run_python(
        """
import torch
class Reads(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 2
    @staticmethod
    def backward(context, gradient):
        return gradient * gradient.sum().item()
try:
    Reads.apply(torch.ones(3, device="neuron", requires_grad=True)).sum().backward()
except Exception as error:
    print(type(error).__name__, error)
""",
        NEURON_DRIVER="dry",
    )
    assert done.returncode == 0, done.stderr
    assert "DryValueError The program reads a value of a neuron tensor" in done.stdout
    assert "<string>:9 in backward" in done.stdout


def test_supplied_values_and_sizes(dry):
    with torch.neuron.dry_values(2.5, sizes={"aten::nonzero": 3, "*": 5}):
        t = torch.zeros(4, 6, device="neuron")
        assert t.sum().item() == 2.5
        assert t.long().sum().item() == 2
        assert t.cpu().tolist() == [[2.5] * 6] * 4
        assert t.nonzero().shape == (3, 2)
        assert t[t > 0].shape == (5,)
        assert torch.unique(t).shape == (5,)
    with pytest.raises(DryValueError):
        t.sum().item()


@pytest.mark.parametrize(
    "make",
    [
        lambda d: torch.arange(10, device=d),
        lambda d: torch.randn(3, 4, device=d).t() @ torch.randn(3, 5, device=d),
        lambda d: torch.cat([torch.ones(2, 3, device=d), torch.ones(1, 3, device=d)]),
        lambda d: torch.nn.functional.conv2d(
            torch.ones(1, 3, 8, 8, device=d), torch.ones(4, 3, 3, 3, device=d), stride=2
        ),
        lambda d: torch.ones(5, device=d)[torch.tensor([0, 1, 1])],
        lambda d: torch.ones(4, 4, device=d).topk(2)[1],
        lambda d: torch.ones(3, device=d).resize_(100),
        lambda d: torch.add(torch.ones(3, device=d), 1, out=torch.empty(0, device=d)),
        lambda d: torch.ones(2, 3, dtype=torch.int64, device=d).to(torch.bfloat16).sum(0),
        lambda d: torch.nn.functional.interpolate(torch.ones(1, 1, 4, 4, device=d), scale_factor=2),
    ],
)
def test_metadata_is_the_cpus(dry, make):
    here, there = make("neuron"), make("cpu")
    assert here.device.type == "neuron"
    assert (here.shape, here.dtype, here.stride()) == (there.shape, there.dtype, there.stride())


def test_results_that_alias_share_memory(dry):
    base = torch.zeros(4, 4, device="neuron")
    before = torch.neuron.memory_allocated()
    assert base[1:].data_ptr() == base.data_ptr() + 16
    assert base.view(2, 8).mul_(2).data_ptr() == base.data_ptr()
    assert torch.neuron.memory_allocated() == before


def test_wrong_shapes_raise(dry):
    with pytest.raises(RuntimeError, match="reduction dim"):
        torch.ones(2, 3, device="neuron") @ torch.ones(2, 3, device="neuron")
    with pytest.raises(RuntimeError, match="does not expand"):
        torch.ones(2, 3, device="neuron").copy_(torch.ones(5))


def test_sparse_tensors_are_refused(dry):
    with pytest.raises(RuntimeError):
        torch.eye(3, device="neuron").to_sparse()


def test_the_driver_changes_only_while_nothing_is_alive():
    kept = torch.ones(3, device="neuron")
    with pytest.raises(RuntimeError, match="alive on neuron"), torch.neuron.driver("dry"):
        pass
    assert torch.neuron.driver() == "host"
    assert kept.sum().item() == 3.0


def test_the_driver_is_back_with_the_last_tensor_that_a_block_left_behind():
    block = torch.neuron.driver("dry")
    block.__enter__()
    left = torch.ones(3, device="neuron")
    view = left[1:]
    with pytest.raises(RuntimeError, match="until the last of them is gone"):
        block.__exit__(None, None, None)
    assert torch.neuron.driver() == "dry"
    del left
    assert torch.neuron.driver() == "dry"
    assert (view + 1).shape == (2,)
    del view
    assert torch.neuron.driver() == "host"
    assert torch.ones(3, device="neuron").sum().item() == 3.0


def test_an_error_within_a_block_is_the_one_that_is_raised():
    def fail_under_dry() -> None:
        with torch.neuron.driver("dry"):
            left = torch.ones(3, device="neuron")
            raise ValueError(f"of the program: {left.shape}")

    with pytest.raises(ValueError, match="of the program") as caught:
        fail_under_dry()
    assert torch.neuron.driver() == "dry"  # the traceback holds the tensor
    del caught
    gc.collect()
    assert torch.neuron.driver() == "host"


def test_the_clock_runs(dry):
    def run() -> float:
        before = torch.neuron.modelled_time()
        torch.ones(1024, 1024, device="neuron") @ torch.ones(1024, 1024, device="neuron")
        return torch.neuron.modelled_time() - before

    assert run() > 1e-4

"""kernel(x) on neuron tensors."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
import torch
from torch._subclasses import FakeTensorMode

import nki
import nki.language as nl
import torch_neuronx
from python_process import output_of
from torch_neuronx.errors import TileKernelError
from torch_neuronx.tile_kernel import operators


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float8_e5m2, torch.int32]
)
def test_result_is_that_of_the_kernel_on_the_cpu_and_stays_on_the_device(add, rng, dtype):
    a, b = ((4 * torch.randn(200, 64, generator=rng)).to(dtype) for _ in range(2))
    out = add(a.to("neuron"), b.to("neuron"), 2.0)
    assert out.device == torch.device("neuron:0")
    assert out.dtype == dtype
    assert torch.equal(out.cpu().view(torch.uint8), add(a, b, 2.0).view(torch.uint8))


def test_values_are_right(add, rng):
    a, b = torch.randn(2, 256, 64, generator=rng)
    assert torch.equal(add(a.to("neuron"), b.to("neuron")).cpu(), a + b)


def test_strided_inputs_and_outputs_of_the_kernel(add, accumulate, rng):
    a = torch.randn(64, 128, generator=rng).to("neuron")
    b = torch.randn(128, 64, generator=rng).to("neuron")
    assert torch.equal(add(a.t(), b).cpu(), a.cpu().t() + b.cpu())
    before = a.cpu()
    accumulate(a.t(), b)
    assert torch.equal(a.cpu().t(), before.t() + b.cpu())


def test_inputs_that_the_kernel_writes_change_in_place_and_are_returned_as_they_are(accumulate):
    a, b = torch.ones(128, 64, device="neuron"), torch.ones(128, 64, device="neuron")
    address = a.data_ptr()
    version = a._version
    assert accumulate(a, b) is a
    assert a.data_ptr() == address
    assert a._version > version
    assert torch.equal(a.cpu(), torch.full((128, 64), 2.0))


def test_results_are_device_memory_without_a_copy(add):
    a = torch.ones(1024, 1024, device="neuron")
    add(a, a)
    torch.neuron.reset_peak_memory_stats()
    before = torch.neuron.memory_allocated()
    out = add(a, a)
    assert torch.neuron.memory_allocated() - before == out.nbytes
    assert torch.neuron.max_memory_allocated() - before == out.nbytes


def test_several_results_in_containers_and_one_returned_twice():
    @nki.jit
    def split(x, flag):
        low = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        high = nl.ndarray(x.shape, "int32", buffer=nl.shared_hbm)
        tile = nl.load(x)
        nl.store(low, nl.minimum(tile, 0.0))
        nl.store(high, nl.copy(nl.maximum(tile, 0.0), dtype="int32"))
        return {"low": low, "more": (high, low[:64]), "flag": flag}

    x = torch.arange(-64.0, 64.0).reshape(128, 1)
    out = split(x.to("neuron"), 7)
    assert torch.equal(out["low"].cpu(), x.clamp(max=0))
    assert torch.equal(out["more"][0].cpu(), x.clamp(min=0).int())
    assert torch.equal(out["more"][1].cpu(), x.clamp(max=0)[:64])
    assert out["flag"] == 7


def test_two_cores(rng):
    @nki.jit
    def halves(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        mine = slice(nl.program_id(0) * 64, nl.program_id(0) * 64 + 64)
        nl.store(out[mine], nl.add(nl.load(x[mine]), float(nl.program_id(0))))
        return out

    x = torch.randn(128, 8, generator=rng)
    expected = x.clone()
    expected[64:] += 1.0
    assert torch.equal(halves[2](x.to("neuron")).cpu(), expected)
    assert torch.equal(torch_neuronx.wrap_nki(halves)[2](x.to("neuron")).cpu(), expected)


def test_kernel_waits_for_earlier_work_of_the_stream(add):
    stream = torch.neuron.Stream()
    a = torch.zeros(256, 512, device="neuron")
    stream.wait_stream(torch.neuron.current_stream())
    with torch.neuron.stream(stream):
        for _ in range(50):
            a += 1.0
        out = add(a, a)
    stream.synchronize()
    assert torch.equal(out.cpu(), torch.full((256, 512), 100.0))


def test_tracking_and_step_mode(add, monkeypatch):
    a = torch.ones(128, 4, device="neuron")
    torch_neuronx.clear_op_tracking()
    add(a, a)
    assert any(name.startswith("nki::add_") for name in torch_neuronx.get_executed_ops())
    monkeypatch.setenv("NKI_STEP", "1")
    out = add(a, a)
    assert out.device.type == "neuron"
    assert torch.equal(out.cpu(), torch.full((128, 4), 2.0))
    assert "nki::add" in torch_neuronx.get_executed_ops()


@pytest.mark.parametrize("grid", [1, 2])
def test_fake_and_meta_tensors(add, accumulate, grid):
    with FakeTensorMode():
        a = torch.empty(200, 64, device="neuron", dtype=torch.bfloat16)
        out = add[grid](a, a)
        assert (out.shape, out.dtype, out.device) == (a.shape, a.dtype, a.device)
        assert accumulate[grid](a[:100], a[100:]).shape == (100, 64)
    meta = torch.empty(200, 64, device="meta")
    assert add[grid](meta, meta).is_meta


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda a: (a, a.cpu()), r"a \[128, 4\] on neuron:0, b \[128, 4\] on cpu.*to neuron:0"),
        (lambda a: (a, a.to("neuron:1")), r"neuron:1.*Move all of them to neuron:0"),
        (lambda a: (a, np.zeros((128, 4), np.float32)), r"as b, a NumPy array.*from_numpy"),
    ],
)
def test_tensors_that_do_not_go_together(add, arguments, message):
    with pytest.raises(TileKernelError, match=message):
        add(*arguments(torch.ones(128, 4, device="neuron")))


def test_wrong_shape_and_step_mode_in_a_fake_world(add, monkeypatch):
    with pytest.raises(nki.NkiError, match=r"test_direct_calls|conftest"):
        add(torch.ones(128, 4, device="neuron"), torch.ones(64, 4, device="neuron"))
    monkeypatch.setenv("NKI_STEP", "1")
    with FakeTensorMode(), pytest.raises(TileKernelError, match=r"NKI_STEP=1.*outside"):
        add(torch.ones(128, 4, device="neuron"), torch.ones(128, 4, device="neuron"))


def test_a_result_that_needs_grad_says_that_there_is_no_formula(add):
    a = torch.ones(128, 4, device="neuron", requires_grad=True)
    out = add(a, a)
    with pytest.raises(RuntimeError, match="autograd formula"):
        out.sum().backward()


def test_modelled_time_of_the_operator(add):
    a = torch.ones(128, 64, device="neuron")
    torch_neuronx.clear_op_tracking()
    add(a, a)
    (name,) = (op for op in torch_neuronx.get_executed_ops() if op.startswith("nki::add_"))
    assert operators.modelled_seconds(name) == nki.modelled_seconds(add, a, a) > 0
    assert operators.modelled_seconds("nki::nobody") is None


def test_dry_run_gives_shapes_and_runs_nothing():
    code = textwrap.dedent(
        """
        import torch, nki, nki.language as nl

        @nki.jit
        def double(x):
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            tile = nl.load(x)
            nl.store(out, nl.add(tile, tile))
            return out

        x = torch.ones(128, 64, device="neuron", dtype=torch.bfloat16)
        out = double(x)
        print(out.device, out.dtype, tuple(out.shape), torch.neuron.memory_allocated())
        """
    )
    assert output_of(code, NEURON_DRIVER="dry") == "neuron:0 torch.bfloat16 (128, 64) 32768"

"""Mixed precision: autocast's default is bfloat16 in every thread; names of torch.cuda.amp."""

from __future__ import annotations

import threading

import pytest
import torch


@pytest.mark.smoke
def test_autocast_multiplies_in_bfloat16_by_default():
    x = torch.randn(4, 4, device="neuron")
    with torch.autocast("neuron"):
        assert (x @ x).dtype == torch.bfloat16
        assert torch.nn.functional.softmax(x @ x, dim=-1).dtype == torch.float32
    assert (x @ x).dtype == torch.float32


def test_autocast_in_another_thread_is_bfloat16_too():
    found = []

    def work():
        x = torch.randn(4, 4, device="neuron")
        with torch.autocast("neuron"):
            found.append((x @ x).dtype)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [torch.bfloat16]


def test_a_default_set_by_the_user_is_kept():
    torch.set_autocast_dtype("neuron", torch.float16)
    try:
        x = torch.randn(4, 4, device="neuron")
        with torch.autocast("neuron"):
            assert (x @ x).dtype == torch.float16
    finally:
        torch.set_autocast_dtype("neuron", torch.bfloat16)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_dtype_may_be_chosen(dtype):
    x = torch.randn(4, 4, device="neuron")
    with torch.neuron.amp.autocast(dtype=dtype):
        assert (x @ x).dtype == dtype


def test_a_dtype_that_autocast_cannot_use_is_a_warning():
    with (
        pytest.warns(UserWarning, match="bfloat16, torch.float16"),
        torch.autocast("neuron", dtype=torch.float64),
    ):
        assert not torch.is_autocast_enabled("neuron")


def test_autocast_of_other_devices_is_as_before():
    with torch.autocast("cpu"):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
    assert torch.get_autocast_dtype("cpu") == torch.bfloat16


def test_supported_dtypes_are_said():
    assert torch.neuron.get_amp_supported_dtype() == [torch.bfloat16, torch.float16]
    assert torch.neuron.is_bf16_supported()


def test_the_scaler_skips_a_step_with_infinite_gradients():
    weight = torch.nn.Parameter(torch.ones(2, device="neuron"))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.neuron.amp.GradScaler(init_scale=4.0)
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    scaler.scale(weight.sum() * float("inf")).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [0.0, 0.0]
    assert scaler.get_scale() == 2.0

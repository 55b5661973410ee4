"""What transformers, accelerate, diffusers, torchtitan and AWS's users call exists."""

from __future__ import annotations

import importlib.util

import pytest
import torch

import torch_neuronx


@pytest.mark.parametrize(
    "name",
    [
        # Hugging Face
        "is_available",
        "device_count",
        "current_device",
        "set_device",
        "is_bf16_supported",
        "get_device_name",
        "get_device_properties",
        "manual_seed_all",
        "get_rng_state",
        "set_rng_state",
        "get_rng_state_all",
        "set_rng_state_all",
        "empty_cache",
        # torchtitan
        "reset_peak_memory_stats",
        "memory_stats",
        "is_initialized",
        "synchronize",
        # PyTorch's own code for renamed backends
        "_is_in_bad_fork",
        "manual_seed",
        "device",
        "get_amp_supported_dtype",
        "_lazy_init",
        "Stream",
        "Event",
        "stream",
        "current_stream",
        "default_stream",
        "set_stream",
        "mem_get_info",
    ],
)
def test_torch_neuron_has(name):
    assert callable(getattr(torch.neuron, name))


@pytest.mark.parametrize("name", torch.neuron.__all__)
def test_every_public_name_exists(name):
    assert hasattr(torch.neuron, name)


@pytest.mark.parametrize("name", torch_neuronx.__all__)
def test_every_name_of_the_package_exists(name):
    assert hasattr(torch_neuronx, name)


def test_an_unknown_name_is_an_attribute_error_of_torch_neuron():
    with pytest.raises(AttributeError, match=r"'torch\.neuron' has no attribute 'cudart'"):
        torch.neuron.cudart  # noqa: B018


def test_the_package_is_found_as_hugging_face_looks_for_it():
    assert importlib.util.find_spec("torch_neuronx") is not None
    assert torch.neuron.is_available()


def test_torchtitan_finds_device_type_name_and_memory():
    assert torch._utils._get_available_device_type() == "neuron"
    assert torch.get_device_module("neuron") is torch.neuron
    assert "neuron" in torch.neuron.get_device_name()
    assert torch.neuron.get_device_properties().name in {"trn1", "inf2", "trn2", "trn3"}
    stats = torch.neuron.memory_stats()
    for key in ("active_bytes.all.peak", "reserved_bytes.all.peak", "num_alloc_retries"):
        assert key in stats
    assert callable(torch.neuron.memory._record_memory_history)
    assert callable(torch.neuron.memory._snapshot)


def test_accelerate_seeds_and_restores_all_states():
    states = torch.neuron.get_rng_state_all()
    torch.neuron.manual_seed_all(1)
    torch.neuron.set_rng_state_all(states)
    assert torch.equal(torch.neuron.get_rng_state(0), states[0])


def test_fake_tensors_use_the_current_device_without_touching_it():
    from torch._subclasses.fake_tensor import FakeTensorMode

    before = torch.neuron.memory_allocated()
    with FakeTensorMode():
        x = torch.empty(10, 10, device="neuron")
        assert (x @ x).device == torch.device("neuron", torch.neuron.current_device())
    assert torch.neuron.memory_allocated() == before

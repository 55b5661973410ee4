"""Saving, loading, copying and sharing of neuron tensors."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
from safetensors import torch as safetensors


def saved(obj) -> io.BytesIO:
    buffer = io.BytesIO()
    torch.save(obj, buffer)
    buffer.seek(0)
    return buffer


def test_a_tensor_comes_back_on_its_device():
    x = torch.randn(3, 4, device="neuron:2")
    y = torch.load(saved(x))
    assert y.device == x.device
    assert torch.equal(y, x)


@pytest.mark.parametrize("target", ["cpu", "neuron:1"])
def test_map_location_moves_it(target):
    y = torch.load(saved(torch.arange(5, device="neuron")), map_location=target)
    assert y.device == torch.device(target)
    assert y.tolist() == [0, 1, 2, 3, 4]


def test_a_cpu_checkpoint_loads_onto_the_device():
    model = torch.nn.Linear(3, 2)
    state = torch.load(saved(model.state_dict()), map_location="neuron")
    assert all(tensor.is_neuron for tensor in state.values())
    assert torch.equal(state["weight"].cpu(), model.weight)


def test_views_of_one_storage_stay_views():
    x = torch.arange(6.0, device="neuron")
    a, b = torch.load(saved((x, x[2:4])))
    a[2] = 50
    assert b[0].item() == 50


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_are_independent_and_on_the_device(duplicate):
    x = torch.ones(3, device="neuron:1")
    y = duplicate(x)
    y.add_(1)
    assert y.device == x.device
    assert x.tolist() == [1, 1, 1]
    assert y.tolist() == [2, 2, 2]


def test_a_parameter_and_its_module_copy():
    model = torch.nn.Linear(2, 2).neuron()
    clone = copy.deepcopy(model)
    assert clone.weight.is_neuron
    assert clone.weight.data_ptr() != model.weight.data_ptr()
    assert torch.equal(clone.weight, model.weight)


def test_a_device_that_is_gone_is_an_error_that_says_so():
    buffer = saved(torch.ones(2, device="neuron:3"))
    data = buffer.getvalue().replace(b"neuron:3", b"neuron:7")
    with pytest.raises(RuntimeError, match=r"neuron:7|7"):
        torch.load(io.BytesIO(data))


def test_safetensors_go_to_the_device_by_its_index(tmp_path):
    path = tmp_path / "weights.safetensors"
    saved = {"weight": torch.arange(6.0, device="neuron").view(2, 3).to(torch.bfloat16)}
    safetensors.save_file(saved, path)
    for index in (0, 1):
        loaded = safetensors.load_file(path, device=index)["weight"]
        assert loaded.device == torch.device("neuron", index)
        assert torch.equal(loaded.cpu(), saved["weight"].cpu())

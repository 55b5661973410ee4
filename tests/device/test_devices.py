"""Devices: several logical cores in one process, one of them current per thread."""

from __future__ import annotations

import threading

import pytest
import torch

from torch_neuronx.errors import WrongDeviceError


@pytest.fixture(autouse=True)
def first_device():
    torch.neuron.set_device(0)
    yield
    torch.neuron.set_device(0)


def test_there_are_four_logical_cores_by_default():
    assert torch.neuron.is_available()
    assert torch.neuron.device_count() == torch.accelerator.device_count() == 4


def test_tensors_live_on_the_device_they_name():
    for index in range(torch.neuron.device_count()):
        x = torch.arange(3, device=f"neuron:{index}")
        assert x.device.index == x.get_device() == index
        assert (x + 1).device.index == index


def test_the_plain_name_means_the_current_device():
    torch.neuron.set_device(2)
    assert torch.ones(1, device="neuron").device.index == 2
    assert torch.accelerator.current_device_index() == 2


@pytest.mark.parametrize("device", [1, "neuron:1", torch.device("neuron", 1)])
def test_a_device_may_be_named_in_any_form(device):
    torch.neuron.set_device(device)
    assert torch.neuron.current_device() == 1
    with torch.neuron.device(device):
        assert torch.neuron.current_device() == 1


def test_a_block_changes_the_device_and_restores_it():
    torch.neuron.set_device(1)
    with torch.neuron.device(3):
        assert torch.neuron.current_device() == 3
    assert torch.neuron.current_device() == 1


def test_a_block_restores_the_device_after_an_error():
    with pytest.raises(KeyError), torch.neuron.device(3):
        raise KeyError
    assert torch.neuron.current_device() == 0


@pytest.mark.parametrize("device", [None, -1])
def test_a_block_without_a_device_changes_nothing(device):
    torch.neuron.set_device(2)
    with torch.neuron.device(device):
        assert torch.neuron.current_device() == 2
    assert torch.neuron.current_device() == 2


def test_device_of_follows_a_neuron_tensor_and_no_other():
    with torch.neuron.device_of(torch.ones(1, device="neuron:3")):
        assert torch.neuron.current_device() == 3
    with torch.neuron.device_of(torch.ones(1)):
        assert torch.neuron.current_device() == 0


def test_the_accelerator_block_is_the_same_thing():
    with torch.accelerator.device_index(2):
        assert torch.neuron.current_device() == 2
    assert torch.neuron.current_device() == 0


def test_each_thread_has_its_own_current_device():
    torch.neuron.set_device(3)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.neuron.current_device()))
    thread.start()
    thread.join()
    assert seen == [0]


@pytest.mark.parametrize("device", ["cpu", "cuda:0", torch.device("meta")])
def test_a_device_of_another_type_is_refused(device):
    with pytest.raises(WrongDeviceError, match="Expected a neuron device, got"):
        torch.neuron.set_device(device)


def test_a_device_that_does_not_exist_is_refused():
    with pytest.raises((RuntimeError, IndexError), match="4"):
        torch.neuron.set_device(4)
    with pytest.raises(WrongDeviceError, match="this process has 4 devices"):
        torch.neuron.get_device_properties(7)


def test_the_name_says_neuron_and_the_chip():
    # torchtitan looks for "neuron" in the name to find the peak rate.
    assert "neuron" in torch.neuron.get_device_name()
    assert "trn2" in torch.neuron.get_device_name("neuron:1")


def test_properties_are_those_of_the_chip():
    properties = torch.neuron.get_device_properties(1)
    assert properties.name == "trn2"
    assert properties.index == properties.core == 1
    assert properties.total_memory == 24 * 1024**3
    assert properties.logical_nc_config == properties.multi_processor_count == 2
    assert properties.driver == "host"
    assert torch.neuron.get_device_capability() == (properties.major, properties.minor) == (3, 0)
    assert torch.neuron.get_arch_list() == ["trn2"]


def test_cores_of_a_host_read_each_others_memory():
    assert torch.neuron.can_device_access_peer(0, 3)
    assert not torch.neuron.can_device_access_peer(1, "neuron:1")
    with pytest.raises(WrongDeviceError, match="There is no neuron:9"):
        torch.neuron.can_device_access_peer(0, 9)


def test_copies_between_devices_keep_the_values():
    x = torch.randn(5, 7, device="neuron:0")
    y = x.to("neuron:3")
    assert y.device.index == 3
    assert torch.equal(y.cpu(), x.cpu())


def test_synchronize_takes_every_form_of_device():
    x = torch.ones(8, device="neuron:1") * 2
    for device in (None, 1, "neuron:1", torch.device("neuron", 1)):
        torch.neuron.synchronize(device)
    torch.accelerator.synchronize()
    assert x.sum().item() == 16


def test_use_initialises_the_device():
    torch.ones(1, device="neuron")
    assert torch.neuron.is_initialized()
    torch.neuron.init()
    assert torch.neuron.is_initialized()

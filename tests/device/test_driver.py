"""Drivers: the host driver runs, the others say that they do not exist yet."""

from __future__ import annotations

import pytest
import torch

from python_process import run_python
from torch_neuronx.errors import DriverUnavailableError, SettingError


def test_the_host_driver_is_in_use():
    assert torch.neuron.driver() == "host"


def test_a_block_may_ask_for_the_driver_in_use():
    with torch.neuron.driver("host") as name:
        assert name == torch.neuron.driver() == "host"


@pytest.mark.parametrize("name", ["dry", "nrt"])
def test_a_driver_that_does_not_exist_yet_says_so(name):
    with pytest.raises(DriverUnavailableError, match=f"'{name}' is not available yet"):
        torch.neuron.driver(name)


def test_an_unknown_driver_is_refused_before_the_block_runs():
    with pytest.raises(SettingError, match="Write one of host, dry, nrt"):
        torch.neuron.driver("cuda")


@pytest.mark.parametrize("name", ["dry", "nrt"])
def test_the_environment_may_not_ask_for_it_either(name):
    done = run_python("import torch", NEURON_DRIVER=name)
    assert done.returncode == 1
    assert f"The driver '{name}' is not available yet" in done.stderr
    assert "set it to host" in done.stderr

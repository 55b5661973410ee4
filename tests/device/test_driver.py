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


def test_a_driver_that_does_not_exist_yet_says_so():
    with pytest.raises(DriverUnavailableError, match="'nrt' is not available yet"):
        torch.neuron.driver("nrt")


def test_an_unknown_driver_is_refused_before_the_block_runs():
    with pytest.raises(SettingError, match="Write one of host, dry, nrt"):
        torch.neuron.driver("cuda")


def test_the_environment_may_not_ask_for_it_either():
    done = run_python("import torch", NEURON_DRIVER="nrt")
    assert done.returncode == 1
    assert "The driver 'nrt' is not available yet" in done.stderr
    assert "NEURON_DRIVER to host or dry" in done.stderr


def test_the_environment_chooses_the_dry_driver():
    done = run_python("import torch; print(torch.neuron.driver())", NEURON_DRIVER="dry")
    assert (done.returncode, done.stdout) == (0, "dry\n"), done.stderr

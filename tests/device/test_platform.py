"""The modelled machine: which cores a process sees for which settings."""

from __future__ import annotations

import re

import pytest

from python_process import output_of
from torch_neuronx.device.platform import resolve
from torch_neuronx.errors import SettingError
from torch_neuronx.settings import read


def platform(**environ):
    return resolve(read(environ))


@pytest.mark.parametrize(
    ("environ", "instance", "cores", "gib"),
    [
        # One Trainium2: 8 physical cores, 96 GiB.
        ({}, "trn2.3xlarge", 4, 24),
        ({"NEURON_LOGICAL_NC_CONFIG": "1"}, "trn2.3xlarge", 8, 12),
        ({"NEURON_RT_VIRTUAL_CORE_SIZE": "1"}, "trn2.3xlarge", 8, 12),
        ({"NEURON_INSTANCE_TYPE": "trn2.48xlarge"}, "trn2.48xlarge", 64, 24),
        ({"NEURON_INSTANCE_TYPE": "TRN2.48xlarge"}, "trn2.48xlarge", 64, 24),
        # 64 chips on 4 hosts: a process sees those of one host.
        ({"NEURON_INSTANCE_TYPE": "trn2-ultraserver"}, "trn2-ultraserver", 64, 24),
        ({"NEURON_PLATFORM_TARGET_OVERRIDE": "trn2"}, "trn2.3xlarge", 4, 24),
        ({"NEURON_PLATFORM_TARGET_OVERRIDE": "gen3"}, "trn2.3xlarge", 4, 24),
        # Sold as UltraServers only: one chip of the smallest, 144 GiB on 8 cores.
        ({"NEURON_PLATFORM_TARGET_OVERRIDE": "trn3"}, "trn3-ultraserver-gen1", 4, 36),
        ({"NEURON_PLATFORM_TARGET_OVERRIDE": "trn1"}, "trn1.2xlarge", 2, 16),
        ({"NEURON_RT_NUM_CORES": "2"}, "trn2.3xlarge", 2, 24),
    ],
)
def test_settings_decide_cores_and_memory(environ, instance, cores, gib):
    found = platform(**environ)
    assert found.instance.name == instance
    assert found.cores == tuple(range(cores))
    assert found.hbm_bytes_per_core == gib * 1024**3


def test_visible_cores_win_over_their_number():
    found = platform(NEURON_RT_VISIBLE_CORES="3,1", NEURON_RT_NUM_CORES="4")
    assert found.cores == (3, 1)


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"NEURON_PLATFORM_TARGET_OVERRIDE": "trn9"}, "Known: trn1, inf2, trn2, trn3"),
        ({"NEURON_INSTANCE_TYPE": "p5.48xlarge"}, "There is no instance 'p5.48xlarge'"),
        (
            {"NEURON_PLATFORM_TARGET_OVERRIDE": "trn3", "NEURON_INSTANCE_TYPE": "trn2.48xlarge"},
            "asks for trn3, but trn2.48xlarge has trn2",
        ),
        ({"NEURON_LOGICAL_NC_CONFIG": "8"}, "it allows 1 or 2"),
        (
            {"NEURON_LOGICAL_NC_CONFIG": "1", "NEURON_RT_VIRTUAL_CORE_SIZE": "2"},
            "contradict each other",
        ),
        ({"NEURON_RT_VISIBLE_CORES": "2-5"}, "names core 4, but trn2.3xlarge has 4 logical cores"),
        ({"NEURON_RT_NUM_CORES": "5"}, "NEURON_RT_NUM_CORES=5, but trn2.3xlarge has 4"),
        (
            {"NEURON_INSTANCE_TYPE": "trn2.48xlarge", "NEURON_LOGICAL_NC_CONFIG": "1"},
            "at most 127 devices",
        ),
    ],
)
def test_what_cannot_be_is_refused(environ, says):
    with pytest.raises(SettingError, match=re.escape(says)):
        platform(**environ)


def test_a_process_sees_its_visible_cores_as_devices():
    code = (
        "import torch; print(torch.neuron.device_count(), "
        "[torch.neuron.get_device_properties(i).core for i in range(2)], "
        "torch.neuron.mem_get_info(1)[1])"
    )
    printed = output_of(code, NEURON_RT_VISIBLE_CORES="1,3", NEURON_LOGICAL_NC_CONFIG="1")
    assert printed == f"2 [1, 3] {12 * 1024**3}"

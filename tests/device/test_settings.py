"""Settings: every value is read or refused with a sentence."""

from __future__ import annotations

import re

import pytest

from python_process import run_python
from torch_neuronx import settings
from torch_neuronx.errors import SettingError
from torch_neuronx.settings import AllocatorConfig, Settings, read


def test_nothing_set_gives_the_defaults():
    assert read({}) == Settings()


def test_an_empty_value_is_no_value():
    assert read({"NEURON_DRIVER": "", "NEURON_RT_VISIBLE_CORES": ""}) == Settings()


@pytest.mark.parametrize(
    ("name", "text", "field", "expected"),
    [
        ("NEURON_DRIVER", "Host", "driver", "host"),
        ("NEURON_INSTANCE_TYPE", " trn2.48xlarge ", "instance_type", "trn2.48xlarge"),
        ("NEURON_LOGICAL_NC_CONFIG", "1", "logical_nc_config", 1),
        ("NEURON_RT_VISIBLE_CORES", "3", "visible_cores", (3,)),
        ("NEURON_RT_VISIBLE_CORES", "0-2", "visible_cores", (0, 1, 2)),
        ("NEURON_RT_VISIBLE_CORES", "5, 1-2", "visible_cores", (5, 1, 2)),
        ("NEURON_RT_NUM_CORES", "2", "num_cores", 2),
        ("NEURON_RT_NUM_CORES", "0", "num_cores", None),
        ("NEURON_LAUNCH_BLOCKING", "1", "launch_blocking", True),
        ("NEURON_LAUNCH_BLOCKING", "off", "launch_blocking", False),
        ("TORCH_NEURONX_STRICT", "yes", "strict", True),
        ("TORCH_NEURONX_WAIT_DEADLINE", "1.5", "wait_deadline_seconds", 1.5),
        (
            "TORCH_NEURONX_SEGMENT_ALLOCATOR_CONFIG",
            "kMaxSplitSizeBytes=1048576, kMemoryFraction:0.5",
            "allocator",
            AllocatorConfig(max_split_size_bytes=1048576, memory_fraction=0.5),
        ),
    ],
)
def test_a_value_is_read(name, text, field, expected):
    assert getattr(read({name: text}), field) == expected


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("NEURON_DRIVER", "hots", "Did you mean 'host'"),
        ("NEURON_DRIVER", "cuda", "host, dry, nrt"),
        ("NEURON_LOGICAL_NC_CONFIG", "0", "above zero"),
        ("NEURON_LOGICAL_NC_CONFIG", "two", "'two' is not a whole number"),
        ("NEURON_RT_VISIBLE_CORES", "0,x", "'x' in '0,x'"),
        ("NEURON_RT_VISIBLE_CORES", "4-2", "runs backwards"),
        ("NEURON_RT_VISIBLE_CORES", "0-3,2", "core 2 twice"),
        ("NEURON_RT_NUM_CORES", "-1", "Write 0 for all"),
        ("NEURON_LAUNCH_BLOCKING", "maybe", "Write 1 or 0"),
        ("TORCH_NEURONX_WAIT_DEADLINE", "0", "seconds above zero"),
        ("TORCH_NEURONX_WAIT_DEADLINE", "inf", "seconds above zero"),
        ("TORCH_NEURONX_SEGMENT_ALLOCATOR_CONFIG", "kMaxSplitSize=1", "kMaxSplitSizeBytes"),
        ("TORCH_NEURONX_SEGMENT_ALLOCATOR_CONFIG", "kMemoryFraction=2", "at most 1"),
        ("TORCH_NEURONX_SEGMENT_ALLOCATOR_CONFIG", "kMaxSplitSizeBytes", "number of bytes"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_name(name, text, says):
    with pytest.raises(SettingError, match=re.escape(says)) as caught:
        read({name: text})
    assert str(caught.value).startswith(f"{name}={text}: ")


def test_a_misspelt_variable_is_a_warning():
    with pytest.warns(UserWarning, match="Did you mean 'NEURON_RT_VISIBLE_CORES'"):
        read({"NEURON_RT_VISIBEL_CORES": "0"})


def test_variables_of_others_are_no_warning(recwarn):
    read({"NEURON_CC_FLAGS": "-O1", "NEURON_RT_LOG_LEVEL": "ERROR", "TORCH_NEURONX_DUMP": "1"})
    read(dict.fromkeys(settings.WITHOUT_EFFECT, "1"))
    assert not recwarn.list


def test_an_idle_allocator_key_of_aws_is_a_warning():
    with pytest.warns(UserWarning, match="changes nothing here"):
        config = read({"TORCH_NEURONX_SEGMENT_ALLOCATOR_CONFIG": "kMaxNonSplitRoundingBytes=512"})
    assert config.allocator == AllocatorConfig()


def test_no_variable_is_declared_twice():
    assert len(settings.variables()) == len(Settings.__dataclass_fields__)


def test_a_bad_setting_ends_the_import_with_its_sentence():
    done = run_python("import torch", NEURON_INSTANCE_TYPE="trn2.4xlarge")
    assert done.returncode == 1
    assert "NEURON_INSTANCE_TYPE=trn2.4xlarge" in done.stderr
    assert "Did you mean 'trn2.48xlarge'" in done.stderr or "trn2.3xlarge" in done.stderr

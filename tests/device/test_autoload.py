"""`import torch` is enough, costs little, and touches nothing."""

from __future__ import annotations

import pytest
import torch

from python_process import output_of, run_python


@pytest.mark.smoke
def test_import_torch_alone_makes_the_device():
    printed = output_of(
        "import torch; print(torch.neuron.device_count(), torch.device('neuron:2'), "
        "torch.accelerator.current_accelerator())"
    )
    assert printed == "4 neuron:2 neuron"


def test_the_package_may_come_first():
    printed = output_of("import torch_neuronx, torch; print(torch.neuron.is_available())")
    assert printed == "True"


def test_the_package_registers_when_autoload_is_off():
    code = (
        "import torch; print(hasattr(torch, 'neuron'))\n"
        "import torch_neuronx; print(hasattr(torch, 'neuron'))"
    )
    assert output_of(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0").split() == ["False", "True"]


def test_import_does_not_initialise_the_device():
    code = (
        "import torch, threading; print(torch.neuron.is_initialized(), "
        "torch.neuron.memory_reserved(), threading.active_count())"
    )
    assert output_of(code) == "False 0 1"


def test_importing_the_package_costs_less_than_150_ms():
    code = (
        "import torch, time; start = time.process_time(); import torch_neuronx; "
        "print(time.process_time() - start)"
    )
    # CPU time, and the best of three: the machine may be busy.
    best = min(float(output_of(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")) for _ in range(3))
    assert best < 0.150


def test_registering_again_changes_nothing():
    from torch_neuronx import _autoload

    module = torch.neuron
    _autoload()
    assert torch.neuron is module


def test_submodules_are_the_same_under_both_names():
    import torch_neuronx.device.memory

    import torch.neuron.memory  # isort: skip

    assert torch.neuron.memory is torch_neuronx.device.memory


def test_a_missing_extension_is_an_error_that_says_how_to_build_it():
    code = "import sys; sys.modules['torch_neuronx._C'] = None; import torch"
    done = run_python(code)
    assert done.returncode == 1
    assert "BuildError" in done.stderr
    assert "make setup" in done.stderr
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD=0" in done.stderr


def test_exit_with_live_tensors_and_streams_is_clean():
    code = (
        "import torch; x = torch.randn(1000, device='neuron'); s = torch.neuron.Stream()\n"
        "with torch.neuron.stream(s): y = x @ x\n"
        "e = s.record_event()"
    )
    assert run_python(code).returncode == 0


def test_methods_of_tensors_modules_and_storages_exist():
    x = torch.ones(2).neuron()
    assert x.device == torch.device("neuron:0")
    assert x.is_neuron
    assert torch.nn.Linear(2, 2).neuron().weight.is_neuron
    assert torch.ones(2).untyped_storage().neuron().is_neuron
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(3)])
    assert packed.neuron().data.is_neuron
    assert not torch.ones(2).is_neuron


def test_tensors_print_their_device():
    assert "device='neuron:0'" in repr(torch.ones(2, device="neuron"))
    assert repr(torch.arange(3, device="neuron:1")) == "tensor([0, 1, 2], device='neuron:1')"

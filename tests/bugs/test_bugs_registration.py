"""Bugs that users of other out-of-tree devices reported, 1 to 10: registration, saving, compile."""

from __future__ import annotations

import io
import threading

import numpy as np
import pytest
import torch
import torch.utils.dlpack
from torch import nn

from python_process import output_of, run_python


def saved(value):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return buffer


@pytest.mark.parametrize(
    ("map_location", "expected"),
    [
        (None, "neuron:1"),
        ("cpu", "cpu"),
        ("neuron:2", "neuron:2"),
        (torch.device("neuron", 3), "neuron:3"),
        ({"neuron:1": "neuron:0"}, "neuron:0"),
        (lambda storage, location: storage.cpu(), "cpu"),
    ],
)
def test_01_a_saved_tensor_loads_to_every_kind_of_map_location(map_location, expected):
    """pytorch#165455: a renamed backend was taken for the CPU by torch.load."""
    x = torch.arange(5.0, device="neuron:1")
    loaded = torch.load(saved(x), map_location=map_location)
    assert str(loaded.device) == expected
    assert torch.equal(loaded.cpu(), x.cpu())


def test_02_the_name_without_the_package_is_a_clear_error():
    """pytorch#134293, #144845: an op before registration ended in a ModuleNotFoundError."""
    code = (
        "import torch\n"
        "try:\n"
        "    torch.empty(1, device='neuron')\n"
        "except RuntimeError as error:\n"
        "    print(type(error).__name__, 'neuron' in str(error))\n"
    )
    assert output_of(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "RuntimeError True"


def test_02_a_process_that_imports_the_package_late_still_works():
    """The same report: import torch without the device first, the package afterwards."""
    code = "import torch, torch_neuronx; print(torch.ones(2, device='neuron').sum().item())"
    done = run_python(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.stdout.strip() == "2.0", done.stderr


@pytest.mark.parametrize(
    "work",
    [
        "torch.empty(1, device=torch.device('neuron'))",
        "torch.ones(3).to(torch.device('neuron', 1))",
        "torch.tensor([1, 2], device='neuron:0')",
        "torch.randn(2, 2, device='neuron') @ torch.eye(2, device='neuron')",
        "torch.set_default_device('neuron'); torch.ones(2)",
        "torch.nn.Linear(2, 2, device='neuron')",
    ],
)
def test_03_the_first_thing_a_process_does_with_the_device_works(work):
    """pytorch#146572: "not linked with support for" while the device guard was missing."""
    assert output_of(f"import torch\n{work}\nprint('fine')") == "fine"


def test_04_a_compiled_function_creates_tensors_on_the_device():
    """pytorch#160909: torch.compile took PrivateUse1 tensors for meta tensors."""

    @torch.compile(backend="aot_eager", fullgraph=True)
    def function(x):
        return x + torch.ones(3, device=x.device) * torch.arange(3, device="neuron")

    x = torch.full((3,), 2.0, device="neuron")
    y = function(x)
    assert y.device == x.device
    assert y.tolist() == [2.0, 3.0, 4.0]


def test_05_exporting_a_module_with_a_constant_tensor_does_not_use_the_device():
    """pytorch#178019: fake tensors of embedded constants initialised the device."""
    code = """
import torch
class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.constant = torch.tensor([1.0, 2.0])
    def forward(self, x):
        return x * self.constant
program = torch.export.export(Module(), (torch.ones(2),))
print(program.module()(torch.ones(2)).tolist(), torch.neuron.is_initialized())
"""
    assert output_of(code) == "[1.0, 2.0] False"


def test_06_backward_runs_in_a_thread_of_ones_own():
    """pytorch_dlprim#58: backward raised, because the engine asked hooks that were missing."""
    found = []

    def work():
        w = torch.ones(4, 4, device="neuron", requires_grad=True)
        (w @ w).sum().backward()
        found.append(w.grad.cpu())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert torch.equal(found[0], torch.full((4, 4), 8.0))


@pytest.mark.slow
@pytest.mark.parametrize("wrapper", ["ddp", "fsdp2"])
def test_07_data_parallel_training_and_its_state_dict(wrapper):
    """pytorch#104390: DDP's forward and FSDP's checkpoints were written for cuda."""
    code = f"""
import tempfile, torch, torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import get_model_state_dict
file = tempfile.NamedTemporaryFile()
dist.init_process_group("neuron", init_method="file://" + file.name, rank=0, world_size=1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).to("neuron")
if {wrapper!r} == "ddp":
    model = nn.parallel.DistributedDataParallel(model)
else:
    from torch.distributed.fsdp import fully_shard
    fully_shard(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.ones(3, 4, device="neuron")
losses = []
for _ in range(3):
    loss = model(x).square().sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
state = get_model_state_dict(model)
print(losses[2] < losses[0], sorted({{t.device.type for t in state.values()}}))
dist.destroy_process_group()
"""
    assert output_of(code).splitlines()[-1] == "True ['neuron']"


def test_08_the_location_tag_holds_the_index():
    """pytorch#100632: the tag of a saved tensor lacked the device's index."""
    assert torch.serialization.location_tag(torch.ones(1, device="neuron:1").untyped_storage()) == (
        "neuron:1"
    )
    module = nn.Linear(2, 2, device="neuron:1")
    state = torch.load(saved(module.state_dict()))
    assert {str(t.device) for t in state.values()} == {"neuron:1"}


def test_09_a_compiled_training_step_runs_through_the_whole_compiler():
    """A backend that reused Inductor's CPU scheduling met a TypeError in its scheduler."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2))
    x = torch.randn(5, 6)
    expected = model(x).square().mean()
    expected.backward()
    expected_grads = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model.to("neuron")
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    loss = compiled(x.to("neuron")).square().mean()
    loss.backward()
    torch.testing.assert_close(loss.cpu(), expected)
    for parameter, grad in zip(model.parameters(), expected_grads, strict=True):
        torch.testing.assert_close(parameter.grad.cpu(), grad)


def test_10_dlpack_knows_the_renamed_device():
    """`__dlpack_device__` compares with the name "privateuse1": a ValueError after renaming."""
    x = torch.arange(6.0, device="neuron").reshape(2, 3)
    assert torch.equal(torch.from_dlpack(x), x)
    assert np.array_equal(np.from_dlpack(x.cpu()), np.arange(6.0).reshape(2, 3))
    kind, index = x.__dlpack_device__()
    assert (int(kind), index) == (12, 0)  # kDLExtDev

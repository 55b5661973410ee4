"""Neuron tensors in queues and arguments of other processes: one memory, as with CPU tensors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as mp

DEADLINE_SECONDS = 120

PROGRAM = """
import torch, torch.multiprocessing as mp

def child(argument, model, to_child, to_parent):
    first, second = to_child.get(timeout=60), to_child.get(timeout=60)
    facts = {
        "argument": (str(argument.device), argument.tolist()),
        "one storage": first.untyped_storage()._cdata == second.untyped_storage()._cdata,
        "strides": first.stride(), "dtype": first.dtype, "offset": second.storage_offset(),
        "parameter": type(model.weight).__name__, "allocated": torch.neuron.memory_allocated(),
    }
    argument.add_(1)
    first.mul_(2)
    with torch.no_grad():
        model.weight.fill_(3)
    torch.neuron.synchronize()
    to_parent.put(facts)
    to_parent.put(first)
    to_parent.put(torch.full((3,), 7.0, device="neuron:1"))
    to_child.get(timeout=60)  # what it sent lives until the parent has it

if __name__ == "__main__":
    context = mp.get_context("spawn")
    to_child, to_parent = context.Queue(), context.Queue()
    argument = torch.arange(3.0, device="neuron")
    square = torch.ones(2, 2, device="neuron", dtype=torch.bfloat16)
    model = torch.nn.Linear(2, 2).to("neuron")
    allocated = torch.neuron.memory_allocated()
    process = context.Process(target=child, args=(argument, model, to_child, to_parent))
    process.start()
    to_child.put(square.t())
    to_child.put(square[1:])
    facts, back, other = (to_parent.get(timeout=60) for _ in range(3))
    assert facts == {
        "argument": ("neuron:0", [0.0, 1.0, 2.0]), "one storage": True, "strides": (1, 2),
        "dtype": torch.bfloat16, "offset": 2, "parameter": "Parameter", "allocated": 0,
    }, facts
    assert back.untyped_storage()._cdata == square.untyped_storage()._cdata
    assert argument.tolist() == [1.0, 2.0, 3.0]
    assert square.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert model.weight.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert other.device == torch.device("neuron:1") and other.tolist() == [7.0] * 3
    assert torch.neuron.memory_allocated() == allocated
    to_child.put(None)
    process.join(60)
    assert process.exitcode == 0
    print("shared")
"""


def test_a_spawned_process_works_on_the_same_memory(tmp_path: Path):
    script = tmp_path / "share.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.stdout == "shared\n", done.stderr


@pytest.fixture(params=sorted(mp.get_all_sharing_strategies()))
def queue(request):
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(request.param)
    yield mp.get_context("spawn").Queue()
    mp.set_sharing_strategy(before)


def passed(queue, value):
    queue.put(value)
    return queue.get(timeout=DEADLINE_SECONDS)


def test_a_tensor_that_comes_back_is_over_the_same_storage(queue):
    sent = torch.arange(6.0, device="neuron").view(2, 3)
    received = passed(queue, sent[1])
    received.mul_(10)
    assert sent.tolist() == [[0, 1, 2], [30, 40, 50]]
    again = passed(queue, sent)
    assert again.data_ptr() == sent.data_ptr()


def test_other_forms_pass(queue):
    parameter = torch.nn.Parameter(torch.ones(3, device="neuron"))
    assert isinstance(passed(queue, parameter), torch.nn.Parameter)
    assert passed(queue, torch.empty(0, 3, device="neuron")).shape == (0, 3)
    sparse = torch.eye(3).to_sparse().to("neuron")
    assert passed(queue, sparse).to_dense().tolist() == torch.eye(3).tolist()
    complex_view = torch.tensor([1 + 2j], device="neuron").conj()
    assert passed(queue, complex_view.resolve_conj()).tolist() == [1 - 2j]
    assert passed(queue, torch.ones(2)).device.type == "cpu"
    storage = torch.ones(2, device="neuron").untyped_storage()
    assert passed(queue, storage).device.type == "neuron"


def test_the_strategy_may_change_between_two_sends(queue):
    sent = torch.arange(4.0, device="neuron")
    passed(queue, sent)
    for strategy in sorted(mp.get_all_sharing_strategies()):
        mp.set_sharing_strategy(strategy)
        received = passed(queue, sent)
        sent.add_(1)
        assert received.tolist() == sent.tolist()


def test_shared_memory_keeps_its_place_in_the_modelled_memory(queue):
    before = torch.neuron.memory_allocated()
    sent = torch.ones(2**20, device="neuron")
    held = torch.neuron.memory_allocated()
    received = passed(queue, sent)
    assert torch.neuron.memory_allocated() == held
    del sent, received
    assert torch.neuron.memory_allocated() == before


def test_a_shared_storage_cannot_be_resized(queue):
    sent = torch.ones(4, device="neuron")
    passed(queue, sent)
    with pytest.raises(RuntimeError, match="not resizable"):
        sent.resize_(100)
    assert (sent + 1).tolist() == [2.0] * 4


def test_work_of_other_streams_is_in_what_is_sent(queue):
    stream = torch.neuron.Stream()
    with torch.neuron.stream(stream):
        sent = torch.ones(2**20, device="neuron")
        for _ in range(10):
            sent.add_(1)
    assert passed(queue, sent).sum().item() == 11 * 2**20

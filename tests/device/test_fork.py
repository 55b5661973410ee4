"""Fork: a child may not use a device that its parent used, and is told what to do."""

from __future__ import annotations

import pytest

from python_process import output_of

PROLOGUE = """
import os, sys, torch
def in_child(work):
    sys.stdout.flush()
    if (child := os.fork()) == 0:
        try:
            print(work())
        except Exception as error:
            print(type(error).__name__, error)
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.mark.parametrize("work", ["torch.ones(2, device='neuron')", "torch.neuron.init()", "x + 1"])
def test_a_child_of_a_parent_that_used_the_device_is_refused(work):
    code = f"{PROLOGUE}\nx = torch.ones(2, device='neuron')\nin_child(lambda: {work})"
    printed = output_of(code)
    assert "Error" in printed
    assert "spawn" in printed


@pytest.mark.parametrize(
    "work",
    [
        "torch.neuron.driver('dry').__enter__()",
        "torch.neuron.synchronize()",
        "torch.accelerator.synchronize()",
        "torch.neuron.Stream()",
        "torch.Stream('neuron')",
        "torch.neuron.current_stream().synchronize()",
        "torch.neuron.Event().record()",
        "event.query()",
        "event.synchronize()",
        "torch.neuron.mem_get_info()",
        "torch.neuron.set_per_process_memory_fraction(0.5)",
    ],
)
def test_what_streams_and_locks_stand_behind_is_refused(work):
    code = (
        f"{PROLOGUE}\nx = torch.ones(2, device='neuron')\nevent = torch.neuron.Event()\n"
        f"event.record()\nin_child(lambda: {work})"
    )
    printed = output_of(code)
    assert "Error" in printed
    assert "spawn" in printed


def test_values_that_are_there_may_be_read():
    code = f"{PROLOGUE}\nx = torch.ones(2, device='neuron')\nin_child(lambda: x.tolist())"
    assert output_of(code) == "[1.0, 1.0]"


def test_memory_of_the_parent_is_none_of_the_child():
    code = (
        f"{PROLOGUE}\nx = torch.ones(2, device='neuron')\n"
        "in_child(lambda: (torch.neuron.memory_allocated(), torch.neuron.memory_snapshot(), "
        "torch.neuron.empty_cache()))"
    )
    assert output_of(code) == "(0, [], None)"


def test_a_child_of_a_parent_that_did_not_use_it_may():
    code = f"{PROLOGUE}\nin_child(lambda: (torch.ones(2, device='neuron') * 3).tolist())"
    assert output_of(code) == "[3.0, 3.0]"


def test_the_parent_goes_on_after_the_fork():
    code = (
        f"{PROLOGUE}\nx = torch.ones(2, device='neuron')\nin_child(lambda: 1)\n"
        "print((x + 1).tolist(), torch.neuron._is_in_bad_fork())"
    )
    assert output_of(code).splitlines()[-1] == "[2.0, 2.0] False"


def test_a_child_may_still_ask_questions():
    code = (
        f"{PROLOGUE}\nx = torch.ones(2, device='neuron')\n"
        "in_child(lambda: (torch.neuron.is_available(), torch.neuron.device_count(), "
        "torch.neuron.is_initialized(), torch.neuron._is_in_bad_fork()))"
    )
    assert output_of(code) == "(True, 4, False, True)"


def test_seeding_in_a_child_is_silent():
    # DataLoader workers call torch.manual_seed.
    code = (
        f"{PROLOGUE}\nx = torch.ones(2, device='neuron')\n"
        "in_child(lambda: torch.manual_seed(1) is not None)"
    )
    assert output_of(code) == "True"

"""The end of a process: its exit status is the program's own."""

from __future__ import annotations

import pytest

from python_process import run_python

FAILING_BACKWARD = """
import torch
class Fails(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 2
    @staticmethod
    def backward(context, gradient):
        raise ValueError("boom")
x = torch.ones(300, device="neuron", requires_grad=True)
Fails.apply(x * 3).sum().backward()
"""


@pytest.mark.parametrize("driver", ["host", "dry"])
def test_an_uncaught_error_in_backward_ends_with_status_1(driver):
    # Without the wait at exit about one in three ended with SIGABRT.
    for _ in range(8):
        done = run_python(FAILING_BACKWARD, NEURON_DRIVER=driver)
        assert done.returncode == 1, done.stderr
        assert done.stderr.rstrip().endswith("ValueError: boom")


def test_a_program_without_backward_starts_no_thread_for_it():
    done = run_python(
        """
import atexit, os, threading
def names():
    return [open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")]
# Registered before the device's own, so that it runs after it.
atexit.register(lambda: print(any(name.startswith("pt_autograd") for name in names())))
import torch
(torch.ones(2, device="neuron") + 1).sum().item()
"""
    )
    assert (done.returncode, done.stdout.strip()) == (0, "False"), done.stderr


def test_an_asynchronous_error_at_exit_is_a_sentence():
    done = run_python(
        """
import torch
with torch.neuron.stream(torch.neuron.Stream()):
    x = torch.ones(1000, 1000, device="neuron")
    for _ in range(5):
        x = x @ x
    x[torch.tensor([9999], device="neuron")]
"""
    )
    assert "index 9999 is out of bounds for dimension 0 with size 1000. Run with" in done.stderr
    assert "frame #" not in done.stderr


def test_an_uncaught_error_and_sys_exit_keep_their_status():
    work = "import sys, torch\nx = torch.ones(2, device='neuron')\n"
    assert run_python(work + "x @ torch.ones(3, 3, device='neuron')").returncode == 1
    assert run_python(work + "sys.exit(7)").returncode == 7

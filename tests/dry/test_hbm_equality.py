"""HBM peaks of a dry run are those of the host driver, to the byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from dry.models import MODELS, peaks
from python_process import run_python

_TESTS = Path(__file__).resolve().parent.parent
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
_CASES = [
    (name, training, dtype) for name in MODELS for training in (True, False) for dtype in _DTYPES
]


@pytest.fixture(scope="module")
def on_host():
    return _all_peaks("host")


@pytest.fixture(scope="module")
def dry():
    return _all_peaks("dry")


def _all_peaks(driver: str) -> dict[str, dict[str, int]]:
    code = f"import sys; sys.path.insert(0, {str(_TESTS)!r})\n"
    code += "from dry.test_hbm_equality import report; report()"
    done = run_python(code, NEURON_DRIVER=driver, OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def report() -> None:
    """Print the peaks of all cases; runs in a process with either driver."""
    found = {
        f"{name} {training} {dtype}": peaks(name, training=training, dtype=_DTYPES[dtype])
        for name, training, dtype in _CASES
    }
    print(json.dumps(found))


@pytest.mark.parametrize(("name", "training", "dtype"), _CASES)
def test_hbm_peak_is_the_host_drivers(on_host, dry, name, training, dtype):
    key = f"{name} {training} {dtype}"
    assert on_host[key] == dry[key]
    assert min(on_host[key].values()) > 0

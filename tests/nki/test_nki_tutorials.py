"""The tutorials run, check themselves, and report a modelled time."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "nki"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))


def _module(name):
    spec = importlib.util.spec_from_file_location(f"nki_tutorial_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", NAMES)
def test_tutorial_runs(name, chip, capsys):
    _module(name).main()
    assert " us" in capsys.readouterr().out


def test_each_matmul_step_is_faster_than_the_one_before(chip, capsys):
    _module("matmul").main()
    times = [float(line.split()[1]) for line in capsys.readouterr().out.splitlines()]
    assert len(times) == 5
    assert times == sorted(times, reverse=True)

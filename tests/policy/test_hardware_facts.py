"""Numbers of the hardware are written in neuron_chip and nowhere else."""

from __future__ import annotations

import ast
import dataclasses
import operator
import re
from collections.abc import Iterator
from typing import Any

import neuron_chip
from policy.sources import cpp_files, python_files, shown, tree, without_comments

OTHERS = ("nki", "nkilib", "torch_neuronx", "vllm_neuron", "neuron_explorer")
# Smaller numbers, and powers of two up to a MiB, have too many other meanings.
MIN_DISTINCTIVE = 10_000

_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.LShift: operator.lshift,
    ast.Pow: operator.pow,
}


def numbers_in(record: Any) -> Iterator[float]:
    if isinstance(record, bool) or record is None:
        return
    if isinstance(record, int | float):
        yield float(record)
    elif dataclasses.is_dataclass(record):
        for field in dataclasses.fields(record):
            yield from numbers_in(getattr(record, field.name))


def hardware_numbers() -> set[float]:
    numbers = {
        number for row in (*neuron_chip.CHIPS, *neuron_chip.INSTANCES) for number in numbers_in(row)
    }
    numbers |= {float(chip.hbm_bytes_per_logical_core()) for chip in neuron_chip.CHIPS}
    generic = {float(2**power) for power in range(21)} | {float(10**power) for power in range(16)}
    return {number for number in numbers if number >= MIN_DISTINCTIVE} - generic


def value(node: ast.expr) -> float | None:
    """The number that a constant expression gives, None for any other expression."""
    if isinstance(node, ast.Constant):
        is_number = isinstance(node.value, int | float) and not isinstance(node.value, bool)
        return node.value if is_number else None
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = value(node.left), value(node.right)
        if left is None or right is None or abs(right) > 1e30 or abs(left) > 1e30:
            return None
        if isinstance(node.op, ast.LShift | ast.Pow) and not 0 <= right <= 64:
            return None
        return _OPERATORS[type(node.op)](left, right)
    return None


def test_the_check_knows_the_size_of_a_core():
    assert float(24 << 30) in hardware_numbers()


def test_python_outside_neuron_chip_holds_no_hardware_number():
    numbers = hardware_numbers()
    wrong = [
        f"{shown(path)}:{node.lineno} {ast.unparse(node)}"
        for package in OTHERS
        for path in python_files(f"src/{package}")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant | ast.BinOp)
        and (number := value(node)) is not None
        and float(number) in numbers
    ]
    assert not wrong, "\n".join(wrong)


_CPP_NUMBER = re.compile(r"\b(\d[\d']*(?:\.\d*)?(?:e\d+)?)(?:[uUlL]*)(?:\s*<<\s*(\d+))?")


def test_cpp_holds_no_hardware_number():
    numbers = hardware_numbers()
    wrong = []
    for path in cpp_files("src"):
        for match in _CPP_NUMBER.finditer(without_comments(path.read_text())):
            number = float(match[1].replace("'", ""))
            if match[2] is not None and number < 1e6:
                number *= 2.0 ** min(int(match[2]), 64)
            if number in numbers:
                wrong.append(f"{shown(path)}: {match[0]}")
    assert not wrong, "\n".join(wrong)

"""Tests can fail, and those that do not run say why."""

from __future__ import annotations

import ast
from collections import Counter

from policy.sources import python_files, shown, tree

_NEED_REASONS = ("pytest.skip", "pytest.xfail", "pytest.mark.skip", "pytest.mark.xfail")
_CHECKS = ("assert", "raises", "warns", "check", "expect", "fail")


def functions_of(path):
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node


def name_of(call: ast.Call) -> str:
    target = call.func
    return target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")


def checks_something(test: ast.FunctionDef) -> bool:
    return any(
        isinstance(node, ast.Assert | ast.Raise)
        or (isinstance(node, ast.Call) and any(word in name_of(node) for word in _CHECKS))
        for node in ast.walk(test)
    )


def test_every_test_checks_something():
    wrong = [
        f"{shown(path)}:{test.lineno} {test.name}"
        for path in python_files("tests")
        for test in functions_of(path)
        if not checks_something(test)
    ]
    assert not wrong, wrong


def test_every_file_of_tests_has_a_name_of_its_own():
    count = Counter(path.name for path in python_files("tests") if path.name != "conftest.py")
    assert not (twice := [name for name, times in count.items() if times > 1]), twice


def test_every_skip_and_expected_failure_gives_a_reason():
    wrong = []
    for path in python_files("tests"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in _NEED_REASONS:
                calls = [
                    call
                    for call in ast.walk(tree(path))
                    if isinstance(call, ast.Call) and call.func is node
                ]
                if not any(
                    call.args or any(word.arg == "reason" for word in call.keywords)
                    for call in calls
                ):
                    wrong.append(f"{shown(path)}:{node.lineno}")
    assert not wrong, wrong


def test_no_test_sleeps():
    wrong = [
        f"{shown(path)}:{node.lineno}"
        for path in python_files("tests")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and ast.unparse(node.func) == "time.sleep"
    ]
    assert not wrong, wrong

"""Files are read in one sitting, and their names say what is in them."""

from __future__ import annotations

import ast

from policy.sources import cpp_files, python_files, shown, tree

MAX_SOURCE_LINES = 400
MAX_TEST_LINES = 600
MAX_FUNCTION_LINES = 60
# Names that say nothing, or when a file was written instead of what it is.
EMPTY_NAMES = {"util", "utils", "common", "helper", "helpers", "core", "misc", "extra", "base"}
EMPTY_ENDINGS = ("_old", "_new", "_extended", "_misc", "_utils", "_helpers", "_v2", "_gaps")


def test_source_files_are_short():
    files = python_files("src", "examples", "benchmarks") + cpp_files("src")
    long = {shown(path): path.read_text().count("\n") for path in files}
    wrong = [f"{name}: {lines}" for name, lines in long.items() if lines > MAX_SOURCE_LINES]
    assert not wrong, f"more than {MAX_SOURCE_LINES} lines, split by concept: {wrong}"


def test_test_files_are_short():
    files = python_files("tests") + cpp_files("tests")
    long = {shown(path): path.read_text().count("\n") for path in files}
    wrong = [f"{name}: {lines}" for name, lines in long.items() if lines > MAX_TEST_LINES]
    assert not wrong, f"more than {MAX_TEST_LINES} lines, split by subject: {wrong}"


def test_functions_are_short():
    wrong = []
    for path in python_files("src"):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                has_docstring = ast.get_docstring(node) is not None
                body = node.body[1 if has_docstring and len(node.body) > 1 else 0 :]
                lines = (node.end_lineno or 0) - body[0].lineno + 1
                if lines > MAX_FUNCTION_LINES:
                    wrong.append(f"{shown(path)}:{node.lineno} {node.name}: {lines} lines")
    assert not wrong, f"bodies of more than {MAX_FUNCTION_LINES} lines: {wrong}"


def test_file_names_name_a_concept():
    wrong = [
        shown(path)
        for path in python_files("src", "tests", "examples", "benchmarks")
        + cpp_files("src", "tests")
        if path.stem.removeprefix("test_") in EMPTY_NAMES or path.stem.endswith(EMPTY_ENDINGS)
    ]
    assert not wrong, wrong

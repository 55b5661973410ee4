"""Environment variables: read in one place per package, each one documented."""

from __future__ import annotations

import ast
import re

from policy.sources import ROOT, cpp_files, python_files, shown, tree, without_comments

DOCS = ROOT / "docs"
_NAME = re.compile(r"\b(?:NEURON|NKI|TORCH_NEURONX)_[A-Z0-9_]*[A-Z0-9]\b")


def documented() -> set[str]:
    return {name for page in DOCS.glob("*.md") for name in _NAME.findall(page.read_text())}


def reads_environment(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and (
        (isinstance(node.value, ast.Name) and node.value.id == "os")
        and node.attr in ("environ", "environb", "getenv", "putenv", "unsetenv")
    )


def test_python_reads_the_environment_in_settings_only():
    wrong = [
        f"{shown(path)}:{node.lineno}"
        for path in python_files("src")
        if path.name != "settings.py"
        for node in ast.walk(tree(path))
        if reads_environment(node)
        or (
            isinstance(node, ast.ImportFrom)
            and node.module == "os"
            and {"environ", "getenv"} & {alias.name for alias in node.names}
        )
    ]
    assert not wrong, wrong


def test_each_package_has_at_most_one_settings_module():
    packages = [
        path.relative_to(ROOT / "src").parts[0]
        for path in python_files("src")
        if path.name == "settings.py"
    ]
    assert len(packages) == len(set(packages)), packages


def test_every_variable_of_a_settings_module_is_documented():
    known = documented()
    wrong = [
        f"{shown(path)}: {node.value}"
        for path in python_files("src")
        if path.name == "settings.py"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and _NAME.fullmatch(node.value)
        and node.value not in known
    ]
    assert not wrong, f"not in docs/: {wrong}"


def test_every_variable_that_cpp_reads_is_documented():
    known = documented()
    wrong = [
        f"{shown(path)}: {name}"
        for path in cpp_files("src")
        for name in re.findall(r'getenv\(\s*"([^"]*)"', without_comments(path.read_text()))
        if name not in known
    ]
    assert not wrong, f"not in docs/: {wrong}"


def test_cpp_reads_no_variable_whose_name_is_computed():
    wrong = [
        shown(path)
        for path in cpp_files("src")
        if re.search(r'\bgetenv\(\s*[^"\s]', without_comments(path.read_text()))
    ]
    assert not wrong, wrong

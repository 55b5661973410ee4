"""The files of this repository, and what a policy needs to know of each."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"


def python_files(*folders: str) -> list[Path]:
    return sorted(
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if "__pycache__" not in path.parts
    )


def cpp_files(*folders: str) -> list[Path]:
    return sorted(
        path
        for folder in folders
        for pattern in ("*.cpp", "*.h", "*.hpp", "*.inc")
        for path in (ROOT / folder).rglob(pattern)
    )


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imported_modules(path: Path) -> list[tuple[int, str]]:
    """Line and dotted name of every import, also of those inside functions.

    Relative imports are resolved; `from a import b` gives "a.b".
    """
    package = list(path.relative_to(SRC).with_suffix("").parts[:-1])
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            parts = [*base, *(node.module.split(".") if node.module else [])]
            found += [(node.lineno, ".".join([*parts, alias.name])) for alias in node.names]
    return found


_INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)


def includes(path: Path) -> list[tuple[bool, str]]:
    """(is quoted, path) of every #include."""
    return [(quote == '"', name) for quote, name in _INCLUDE.findall(path.read_text())]


def without_comments(text: str) -> str:
    """C++ text without comments."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)

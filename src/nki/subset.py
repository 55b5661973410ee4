"""Strict mode: the part of Python that AWS's kernel compiler parses.

The kernel and the functions of its file that it calls by name are read, not run.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from enum import Enum
from types import FunctionType
from typing import Any

from nki.errors import SourceLine, StrictSubsetError
from nki.program.nki_object import NkiObject

Problem = tuple[ast.AST, str]


def check_subset(function: Callable[..., Any]) -> None:
    """Read a kernel's source.

    Raises:
        StrictSubsetError: a construct that AWS's compiler does not accept, with its line.
    """
    waiting = [function]
    seen: set[str] = set()
    while waiting:
        checked = inspect.unwrap(waiting.pop())
        if not isinstance(checked, FunctionType) or checked.__qualname__ in seen:
            continue
        seen.add(checked.__qualname__)
        try:
            lines, first = inspect.getsourcelines(checked)
        except (OSError, TypeError):
            continue  # made without a file: there is nothing to read
        tree = _parse("".join(lines))
        if tree is None:
            continue
        for node, message in _problems(tree, checked):
            line = first + getattr(node, "lineno", 1) - 1
            raise StrictSubsetError(
                f"strict: {message}",
                source=SourceLine(checked.__code__.co_filename, line, checked.__name__),
            )
        waiting.extend(_called(tree, checked))


def _parse(source: str) -> ast.FunctionDef | None:
    try:
        body = ast.parse(textwrap.dedent(source)).body
    except SyntaxError:
        return None  # a lambda in the middle of an expression
    return body[0] if body and isinstance(body[0], ast.FunctionDef) else None


def _called(tree: ast.FunctionDef, function: FunctionType) -> Iterator[Callable[..., Any]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            named: Any = function.__globals__.get(node.func.id)
            found = inspect.unwrap(named)
            if (
                isinstance(found, FunctionType)
                and found.__code__.co_filename == function.__code__.co_filename
            ):
                yield found


def _problems(tree: ast.FunctionDef, function: FunctionType) -> Iterator[Problem]:
    for node in ast.walk(tree):
        check = _CHECKS.get(type(node))
        message = None if check is None or node is tree else check(node, function)
        if message is not None:
            yield node, message


def _parameters(node: Any, _: FunctionType) -> str | None:
    if not node.kwonlyargs:
        return None
    return f"the parameter {node.kwonlyargs[0].arg} is keyword-only. Remove the * before it."


def _comparison(node: Any, _: FunctionType) -> str | None:
    if not any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
        return None
    return "'is' and 'is not' are not accepted. Use == and !=."


def _inner_function(node: Any, _: FunctionType) -> str | None:
    if not node.decorator_list:
        return None
    return f"the inner function {node.name} has a decorator. Only kernels may have one."


def _inner_class(node: Any, _: FunctionType) -> str | None:
    bases = [ast.unparse(base).split(".")[-1] for base in node.bases]
    if bases and all(base in ("NKIObject", "NkiObject") for base in bases):
        return None
    return f"the class {node.name} must inherit from nl.NKIObject and nothing else."


def _instance(node: Any, function: FunctionType) -> str | None:
    found = function.__globals__.get(node.func.id) if isinstance(node.func, ast.Name) else None
    if not isinstance(found, type) or found.__module__ != function.__module__:
        return None
    if issubclass(found, NkiObject | Enum):
        return None
    return f"the class {found.__name__} must inherit from nl.NKIObject."


def _dictionary(node: Any, _: FunctionType) -> str | None:
    for key in node.keys:
        if isinstance(key, ast.Constant) and not isinstance(key.value, str):
            return f"dict keys must be str, not {key.value!r}."
    return None


def _always(message: str) -> Callable[[Any, FunctionType], str | None]:
    return lambda _, __: message


_ASYNC = _always("async code is not accepted.")
_GENERATOR = _always("generators are not accepted. Return a list.")
_OUTER_NAME = _always("global and nonlocal are not accepted. Pass and return values.")
_CHECKS: dict[type[ast.AST], Callable[[Any, FunctionType], str | None]] = {
    ast.arguments: _parameters,
    ast.Compare: _comparison,
    ast.FunctionDef: _inner_function,
    ast.ClassDef: _inner_class,
    ast.Call: _instance,
    ast.Dict: _dictionary,
    ast.Yield: _GENERATOR,
    ast.YieldFrom: _GENERATOR,
    ast.AsyncFunctionDef: _ASYNC,
    ast.Await: _ASYNC,
    ast.AsyncFor: _ASYNC,
    ast.AsyncWith: _ASYNC,
    ast.Try: _always("try is not accepted. Decide with if on values known at trace time."),
    ast.Global: _OUTER_NAME,
    ast.Nonlocal: _OUTER_NAME,
}

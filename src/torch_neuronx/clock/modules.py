"""Tells the observer which module is running, by its name in the outermost module."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

from torch_neuronx import _C

_names: list[str] = [""]
_numbers: dict[str, int] = {"": 0}
# Names of a module's descendants, found once for each outermost module.
_known: weakref.WeakKeyDictionary[torch.nn.Module, int] = weakref.WeakKeyDictionary()
_roots: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()
RootListener = Callable[[torch.nn.Module, tuple[Any, ...]], None]
_root_listeners: list[RootListener] = []


def name_of(number: int) -> str:
    """The name behind a module's number; "" for none."""
    return _names[number]


def _number(name: str) -> int:
    number = _numbers.get(name)
    if number is None:
        number = _numbers[name] = len(_names)
        _names.append(name)
    return number


def _name_all(root: torch.nn.Module) -> None:
    kind = type(root).__name__
    for name, module in root.named_modules():
        _known.setdefault(module, _number(f"{kind}.{name}" if name else kind))


def _keyword_arguments() -> tuple[Any, ...]:
    """Those of the call whose hook runs: PyTorch's global hooks get positional arguments only."""
    keywords = sys._getframe(2).f_locals.get("kwargs")
    return tuple(keywords.values()) if isinstance(keywords, dict) else ()


def _enter(module: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
    number = _known.get(module)
    if number is None:
        _name_all(module)
        number = _known[module]
        _roots.add(module)
    before = _C._set_module(number)
    stack = module.__dict__.setdefault("_neuron_outer_modules", [])
    stack.append(before)
    # A checkpointed layer runs again by itself in the backward pass: no root.
    if before == 0 and module in _roots:
        if _root_listeners:
            arguments = (*arguments, *_keyword_arguments())
        for listen in _root_listeners:
            listen(module, arguments)


def _leave(module: torch.nn.Module, arguments: Any, result: Any) -> None:
    del arguments, result
    stack = module.__dict__.get("_neuron_outer_modules")
    if stack:
        _C._set_module(stack.pop())


@contextmanager
def tracked(*listeners: RootListener) -> Iterator[None]:
    """While it lasts, calls are attributed to modules; `listeners` hear of outermost calls."""
    enter = register_module_forward_pre_hook(_enter)
    leave = register_module_forward_hook(_leave, always_call=True)
    _root_listeners.extend(listeners)
    try:
        yield
    finally:
        for listener in listeners:
            _root_listeners.remove(listener)
        enter.remove()
        leave.remove()
        _C._set_module(0)

"""The keyword dtype= of versions before 0.3, when results were returned and needed one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from nki import dtypes
from nki.errors import NkiValidationError
from nki.isa.operands import tile
from nki.program.builder import current

_P = ParamSpec("_P")
_R = TypeVar("_R")


def takes_dtype(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let an instruction be called with dtype=, which has no effect; an error in strict mode."""

    @functools.wraps(function)
    def call(*args: Any, dtype: Any = None, **kwargs: Any) -> Any:
        if dtype is not None:
            _check(function.__name__, dtype, kwargs["dst"] if "dst" in kwargs else args[0])
        return cast(Any, function)(*args, **kwargs)

    return cast(Callable[_P, _R], call)


def _check(name: str, dtype: Any, dst: Any) -> None:
    wanted, actual = dtypes.canonical(dtype), tile(dst, "dst").dtype
    if current().strict:
        raise NkiValidationError(
            f"nisa.{name} has no argument dtype since NKI 0.3; dst decides ({actual}). Remove it."
        )
    if wanted != actual:
        current().warn(
            "legacy_dtype",
            f"nisa.{name}(dtype={wanted}) writes to a dst of {actual}, and dst decides. Allocate "
            f"dst with {wanted}, or remove the argument.",
        )

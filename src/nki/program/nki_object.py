"""NKIObject: base of the records that kernels pass around; fields make the constructor."""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import Any


class NkiObject:
    """A record: fields are annotated in the class, as in a dataclass, decorated or not."""

    __slots__ = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Class attributes without annotation are fields too; @dataclass then sees them."""
        super().__init_subclass__(**kwargs)
        annotations = dict(cls.__dict__.get("__annotations__", {}))
        for name, value in list(cls.__dict__.items()):
            if not name.startswith("_") and name not in annotations and _is_plain(value):
                annotations[name] = "Any"
        if "__slots__" in cls.__dict__:
            return
        cls.__annotations__ = annotations
        if "__init__" not in cls.__dict__:
            # @dataclass keeps a constructor that is there; this one lets fields stay open.
            cls.__init__ = NkiObject.__init__  # type: ignore[method-assign]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        names = _fields(type(self))
        if len(args) > len(names):
            raise TypeError(
                f"{type(self).__name__} has {len(names)} fields ({', '.join(names)}); "
                f"{len(args)} values were given."
            )
        values = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in names or name in values:
                raise TypeError(f"{type(self).__name__}: unexpected or repeated field {name!r}.")
            values[name] = value
        for name in names:
            value = values[name] if name in values else _default(type(self), name)
            if value is not _UNSET:  # kernels fill such fields in later
                object.__setattr__(self, name, value)
        finish = getattr(self, "__post_init__", None)
        if finish is not None:
            finish()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self is other or (bool(_fields(type(self))) and vars(self) == vars(other))

    __hash__ = object.__hash__


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | tuple | Enum)


def _fields(cls: type) -> list[str]:
    names: dict[str, None] = {}
    for base in reversed(cls.__mro__):
        for name, kind in base.__dict__.get("__annotations__", {}).items():
            if "ClassVar" not in str(kind):
                names[name] = None
    return list(names)


_UNSET = object()


def _default(cls: type, name: str) -> Any:
    declared = getattr(cls, "__dataclass_fields__", {}).get(name)
    value = declared if declared is not None else getattr(cls, name, _UNSET)
    if isinstance(value, dataclasses.Field):
        if value.default is dataclasses.MISSING and value.default_factory is dataclasses.MISSING:
            return _UNSET
        if value.default_factory is not dataclasses.MISSING:
            return value.default_factory()
        return value.default
    return value

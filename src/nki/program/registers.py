"""Registers: integers that exist only on the device, such as loop counters and loaded indices."""

from __future__ import annotations

from typing import Any, Protocol

from nki.errors import TraceError


class RegisterHost(Protocol):
    """What registers need from the kernel being built."""

    def register_value(self, register: NkiScalar) -> int | None:
        """The value now, or None while only a trace is recorded."""

    def register_operation(self, operator: str, left: Any, right: Any) -> NkiScalar:
        """A new register for the result of `left operator right`."""


class NkiScalar:
    """A device integer. Arithmetic makes new registers; Python control flow cannot see it."""

    __slots__ = ("dtype", "host", "index", "name")

    def __init__(self, host: RegisterHost, index: int, *, dtype: str = "int32") -> None:
        self.host = host
        self.index = index
        self.dtype = dtype
        self.name = f"r{index}"

    def __repr__(self) -> str:
        return self.name

    def _operate(self, operator: str, left: Any, right: Any) -> NkiScalar:
        if self.dtype == "int64" and operator not in ("add", "subtract", "multiply"):
            raise TraceError(
                f"int64 registers support +, - and *; this is {operator}. Use an int32 register."
            )
        return self.host.register_operation(operator, left, right)

    def __add__(self, other: Any) -> NkiScalar:
        return self._operate("add", self, other)

    def __radd__(self, other: Any) -> NkiScalar:
        return self._operate("add", other, self)

    def __sub__(self, other: Any) -> NkiScalar:
        return self._operate("subtract", self, other)

    def __rsub__(self, other: Any) -> NkiScalar:
        return self._operate("subtract", other, self)

    def __mul__(self, other: Any) -> NkiScalar:
        return self._operate("multiply", self, other)

    def __rmul__(self, other: Any) -> NkiScalar:
        return self._operate("multiply", other, self)

    def __floordiv__(self, other: Any) -> NkiScalar:
        return self._operate("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> NkiScalar:
        return self._operate("floor_divide", other, self)

    def __mod__(self, other: Any) -> NkiScalar:
        return self._operate("mod", self, other)

    def __rmod__(self, other: Any) -> NkiScalar:
        return self._operate("mod", other, self)

    def __lshift__(self, other: Any) -> NkiScalar:
        return self._operate("left_shift", self, other)

    def __rshift__(self, other: Any) -> NkiScalar:
        return self._operate("right_shift", self, other)

    def __and__(self, other: Any) -> NkiScalar:
        return self._operate("bitwise_and", self, other)

    def __or__(self, other: Any) -> NkiScalar:
        return self._operate("bitwise_or", self, other)

    def __xor__(self, other: Any) -> NkiScalar:
        return self._operate("bitwise_xor", self, other)

    def __neg__(self) -> NkiScalar:
        return self._operate("subtract", 0, self)

    def __lt__(self, other: Any) -> NkiScalar:
        return self._operate("less", self, other)

    def __le__(self, other: Any) -> NkiScalar:
        return self._operate("less_equal", self, other)

    def __gt__(self, other: Any) -> NkiScalar:
        return self._operate("greater", self, other)

    def __ge__(self, other: Any) -> NkiScalar:
        return self._operate("greater_equal", self, other)

    def __eq__(self, other: object) -> Any:
        return self._operate("equal", self, other)

    def __ne__(self, other: object) -> Any:
        return self._operate("not_equal", self, other)

    __hash__ = object.__hash__

    def _known(self, use: str) -> int:
        value = self.host.register_value(self)
        if value is None:
            raise TraceError(
                f"Register {self.name} is known only on the device, but {use} needs it in Python. "
                "Use nl.fori_loop or nl.while_loop, or an nl.where on tiles."
            )
        return value

    def __bool__(self) -> bool:
        return self._known("a condition") != 0

    def __int__(self) -> int:
        return self._known("int()")

    def __index__(self) -> int:
        return self._known("an index or range()")


VirtualRegister = NkiScalar

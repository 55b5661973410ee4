"""ALU operators and activation functions by name: which exist, where, and what they may do.

The functions of `nki.language` double as operator tokens: they carry their name in
`nki_operator`. What an operator computes is in `nki.simulator.alu` and `.activations`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nki.errors import NkiValidationError


@dataclass(frozen=True, kw_only=True)
class Operator:
    """One ALU operator."""

    name: str
    group: str
    """bitvec, arithmetic, compare, logical, power, unary or other."""
    reduces: bool = False
    min_generation: int = 2

    @property
    def is_bitvec(self) -> bool:
        """True if it works on bit patterns of integers instead of fp32 values."""
        return self.group == "bitvec"

    @property
    def is_unary(self) -> bool:
        """True if it takes no second operand."""
        return self.group == "unary" or self.name == "invert"


def _rows(
    names: str, group: str, *, reduces: bool = False, min_generation: int = 2
) -> list[Operator]:
    return [
        Operator(name=name, group=group, reduces=reduces, min_generation=min_generation)
        for name in names.split()
    ]


OPERATORS: dict[str, Operator] = {
    row.name: row
    for row in (
        *_rows("bitwise_and bitwise_or bitwise_xor", "bitvec", reduces=True),
        *_rows("invert left_shift right_shift", "bitvec"),
        *_rows("add subtract multiply maximum minimum", "arithmetic", reduces=True),
        *_rows("divide mod fmod", "arithmetic"),
        *_rows("average", "arithmetic", reduces=True),
        *_rows("equal not_equal greater greater_equal less less_equal", "compare"),
        *_rows("logical_and logical_or logical_xor", "logical", reduces=True),
        *_rows("power", "power"),
        *_rows("abs_max abs_min", "arithmetic", min_generation=4),
        *_rows("abs rsqrt reciprocal", "unary"),
        *_rows("square relu", "unary", min_generation=4),
        *_rows("bypass", "other"),
    )
}

ACTIVATIONS: frozenset[str] = frozenset(
    [
        "copy",
        "square",
        "sigmoid",
        "relu",
        "prelu",
        "gelu",
        "gelu_dx",
        "gelu_apprx_tanh",
        "gelu_apprx_sigmoid",
        "gelu_apprx_sigmoid_dx",
        "silu",
        "silu_dx",
        "tanh",
        "softplus",
        "mish",
        "erf",
        "erf_dx",
        "exp",
        "sign",
        "abs",
        "log",
        "sin",
        "arctan",
        "sqrt",
        "rsqrt",
        "reciprocal",
    ]
)

_ALIASES = {
    "max": "maximum",
    "min": "minimum",
    "true_divide": "divide",
    "absolute": "abs",
    "identity": "copy",
    "bitwise_not": "invert",
    "power_": "power",
}


class Token:
    """An operator that is not also a function, such as nl.bypass."""

    __slots__ = ("nki_operator",)

    def __init__(self, name: str) -> None:
        self.nki_operator = name

    def __repr__(self) -> str:
        return f"nl.{self.nki_operator}"


def operator_name(op: Any) -> str:
    """The name that an operator token stands for."""
    name = getattr(op, "nki_operator", None) or (
        op if isinstance(op, str) else getattr(op, "__name__", repr(op))
    )
    return _ALIASES.get(name, name)


def alu(op: Any, *, role: str = "op") -> Operator:
    """The ALU operator that a token names."""
    name = operator_name(op)
    row = OPERATORS.get(name)
    if row is None:
        raise NkiValidationError(
            f"{role}={name} is not an ALU operator. Use one of "
            f"{', '.join('nl.' + known for known in OPERATORS)}."
        )
    return row


def reduction(op: Any, *, role: str = "op") -> Operator:
    """The ALU operator that a token names, checked to be usable in reductions."""
    row = alu(op, role=role)
    if not row.reduces and row.name not in ("abs_max", "abs_min"):
        legal = ", ".join("nl." + name for name, known in OPERATORS.items() if known.reduces)
        raise NkiValidationError(f"{role}={row.name} cannot reduce. Use one of {legal}.")
    return row


def activation(op: Any, *, role: str = "op") -> str:
    """The activation function that a token names."""
    name = operator_name(op)
    if name not in ACTIVATIONS:
        raise NkiValidationError(
            f"{role}={name} is not a function of the scalar engine's tables. Use one of "
            f"{', '.join('nl.' + known for known in sorted(ACTIVATIONS))}."
        )
    return name

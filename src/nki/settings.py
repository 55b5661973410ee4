"""Environment variables of the package, the only place that reads them."""

from __future__ import annotations

import os
from dataclasses import dataclass

from neuron_chip import Chip, chip

_DEFAULT_TARGET = "trn2"


@dataclass(frozen=True, kw_only=True)
class Variable:
    """One environment variable."""

    name: str
    default: str
    meaning: str


VARIABLES: tuple[Variable, ...] = (
    Variable(
        name="NEURON_PLATFORM_TARGET_OVERRIDE",
        default=_DEFAULT_TARGET,
        meaning="chip that kernels are specialised for: trn1, inf2, gen2, trn2, gen3, trn3, gen4",
    ),
    Variable(
        name="NKI_NC_VERSION",
        default="",
        meaning="the same by generation (gen2, gen3, gen4), as the public test harness sets it",
    ),
    Variable(
        name="NEURON_LOGICAL_NC_CONFIG",
        default="2",
        meaning="physical cores of one logical core; kernel[n] may not exceed it",
    ),
    Variable(
        name="NKI_SIMULATOR",
        default="1",
        meaning="1 runs called kernels in the simulator; there is nothing else to run them on here",
    ),
    Variable(
        name="NKI_PRECISE_FP",
        default="1",
        meaning="0 keeps the fp32 values of what engines write as bf16, fp16 or fp8 for readers",
    ),
    Variable(
        name="NEURON_RT_STOCHASTIC_ROUNDING_EN",
        default="0",
        meaning="1 rounds what engines write as bf16, fp16 or fp8 up or down at random, unbiased",
    ),
    Variable(
        name="NEURON_RT_STOCHASTIC_ROUNDING_SEED",
        default="0",
        meaning="seed of that rounding; each core of each call starts from it",
    ),
    Variable(
        name="NKI_STEP",
        default="0",
        meaning="1 runs kernels as plain Python, one instruction at a time, for breakpoint()",
    ),
    Variable(
        name="NKI_STRICT",
        default="0",
        meaning="1 rejects what hardware or AWS's compiler would not accept although we can run it",
    ),
    Variable(
        name="NKI_NATIVE_REPLAY",
        default="1",
        meaning="0 replays programs with NumPy instead of the C++ core",
    ),
    Variable(
        name="NKI_NUM_THREADS",
        default="",
        meaning="threads that replay one kernel; unset: the processors of this process",
    ),
)

_BY_NAME = {row.name: row for row in VARIABLES}


def read(name: str) -> str:
    """The value of a declared variable, its default when it is unset or empty."""
    row = _BY_NAME[name]
    return os.environ.get(name) or row.default


def enabled(name: str) -> bool:
    """True unless the variable says 0, false, no or off."""
    return read(name).strip().lower() not in ("0", "false", "no", "off", "")


def target_chip(asked: str | None = None) -> Chip:
    """The chip that kernels are specialised for.

    Args:
        asked: what a kernel asks for; counts where no variable is set.
    """
    named = read("NKI_NC_VERSION") or os.environ.get("NEURON_PLATFORM_TARGET_OVERRIDE")
    return chip(named or asked or _DEFAULT_TARGET)


def whole(name: str, *, least: int = 0) -> int:
    """The whole number in a variable.

    Raises:
        ValueError: it is none, or less than `least`.
    """
    text = read(name).strip()
    if not text.isdecimal() or int(text) < least:
        raise ValueError(f"{name}={text!r}: write a whole number of at least {least}, as {name}=2.")
    return int(text)

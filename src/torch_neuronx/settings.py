"""Every environment variable of the device, one row each; nothing else reads the environment."""

from __future__ import annotations

import dataclasses
import functools
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch_neuronx.allocator_config import AllocatorConfig, parse_allocator_config
from torch_neuronx.errors import SettingError, did_you_mean

DRIVERS = ("host", "dry", "nrt")


@dataclass(frozen=True, kw_only=True)
class Variable:
    """One environment variable: how its text is read, and what the documentation says."""

    name: str
    parse: Callable[[str], Any]
    accepts: str
    default: str
    meaning: str


def parse_flag(text: str) -> bool:
    """Read 1/0, true/false, yes/no, on/off."""
    word = text.strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off", ""):
        return False
    raise SettingError(f"{text!r} is neither true nor false. Write 1 or 0.")


def parse_driver(text: str) -> str:
    """Read the name of a driver."""
    name = text.strip().lower()
    if name not in DRIVERS:
        raise SettingError(
            f"There is no driver {text!r}.{did_you_mean(name, DRIVERS)} "
            f"Write one of {', '.join(DRIVERS)}."
        )
    return name


def parse_positive(text: str) -> int:
    """Read a whole number above zero."""
    if not text.strip().isdecimal() or int(text) == 0:
        raise SettingError(f"{text!r} is not a whole number above zero.")
    return int(text)


def parse_count(text: str) -> int | None:
    """Read a whole number; 0 means all, as for AWS."""
    if not text.strip().isdecimal():
        raise SettingError(f"{text!r} is not a whole number. Write 0 for all, or how many.")
    return int(text) or None


def parse_seconds(text: str) -> float:
    """Read a time above zero."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise SettingError(f"{text!r} is not a time in seconds above zero, such as 600.")
    return seconds


def parse_cores(text: str) -> tuple[int, ...]:
    """Read core indices and ranges: "0", "0-3", "0,2,5-7"."""
    cores: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise SettingError(
                f"{part.strip()!r} in {text!r} is neither a core nor a range of cores. "
                "Write indices and ranges such as 0-3 or 0,2,5-7."
            )
        stop = int(last) if dash else int(first)
        if stop < int(first):
            raise SettingError(f"The range {part.strip()!r} in {text!r} runs backwards.")
        cores.extend(range(int(first), stop + 1))
    repeated = sorted({core for core in cores if cores.count(core) > 1})
    if repeated:
        raise SettingError(f"{text!r} names core {repeated[0]} twice. Name each core once.")
    return tuple(cores)


def variable(
    name: str,
    *,
    parse: Callable[[str], Any],
    default: Any,
    accepts: str,
    meaning: str,
    shown_default: str | None = None,
) -> Any:
    """Declare a field of `Settings` and the variable that fills it."""
    shown = shown_default if shown_default is not None else str(default)
    row = Variable(name=name, parse=parse, accepts=accepts, default=shown, meaning=meaning)
    return dataclasses.field(default=default, metadata={"variable": row})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings of a process, as read once when the package is imported."""

    driver: str = variable(
        "NEURON_DRIVER",
        parse=parse_driver,
        default="host",
        accepts="`host`, `dry`, `nrt`",
        meaning="Who runs the work. `host`: this machine's CPU, true values. "
        "`dry`: shapes only; time and memory of the chip are modelled. `nrt` (the real chip) is "
        "not available yet.",
    )
    instance_type: str | None = variable(
        "NEURON_INSTANCE_TYPE",
        parse=str.strip,
        default=None,
        shown_default="`trn2.3xlarge`",
        accepts="a Trainium or Inferentia instance",
        meaning="The modelled machine: number of cores and HBM of each.",
    )
    platform_target: str | None = variable(
        "NEURON_PLATFORM_TARGET_OVERRIDE",
        parse=str.strip,
        default=None,
        shown_default="the chip of the instance",
        accepts="`trn1`, `inf2`, `trn2`, `trn3`, `gen2`, `gen3`, `gen4`",
        meaning="The modelled chip. Alone: the smallest instance with it, or one chip of that "
        "instance where AWS sells no single chip.",
    )
    logical_nc_config: int | None = variable(
        "NEURON_LOGICAL_NC_CONFIG",
        parse=parse_positive,
        default=None,
        shown_default="2 on trn2 and trn3, else 1",
        accepts="`1`, `2`",
        meaning="Physical cores that one logical core fuses.",
    )
    virtual_core_size: int | None = variable(
        "NEURON_RT_VIRTUAL_CORE_SIZE",
        parse=parse_positive,
        default=None,
        shown_default="not set",
        accepts="`1`, `2`",
        meaning="The runtime's name for NEURON_LOGICAL_NC_CONFIG; if both are set they must agree.",
    )
    visible_cores: tuple[int, ...] | None = variable(
        "NEURON_RT_VISIBLE_CORES",
        parse=parse_cores,
        default=None,
        shown_default="all",
        accepts="indices and ranges, `0-3` or `0,2,5-7`",
        meaning="Logical cores that this process may use; `neuron:0` is the first of them. "
        "Wins over NEURON_RT_NUM_CORES.",
    )
    num_cores: int | None = variable(
        "NEURON_RT_NUM_CORES",
        parse=parse_count,
        default=None,
        shown_default="0",
        accepts="a number, `0` for all",
        meaning="How many logical cores this process may use, from the first on.",
    )
    launch_blocking: bool = variable(
        "NEURON_LAUNCH_BLOCKING",
        parse=parse_flag,
        default=False,
        shown_default="0",
        accepts="`0`, `1`",
        meaning="Run each operation to its end before the call returns.",
    )
    wait_deadline_seconds: float = variable(
        "TORCH_NEURONX_WAIT_DEADLINE",
        parse=parse_seconds,
        default=600.0,
        shown_default="600",
        accepts="seconds",
        meaning="How long any wait for the device may last before it is an error.",
    )
    strict: bool = variable(
        "TORCH_NEURONX_STRICT",
        parse=parse_flag,
        default=False,
        shown_default="0",
        accepts="`0`, `1`",
        meaning="Raise for every operation that the chip could not run natively, instead of "
        "running it and listing it in `torch_neuronx.fallback_report()`.",
    )
    allocator: AllocatorConfig = variable(
        "TORCH_NEURONX_SEGMENT_ALLOCATOR_CONFIG",
        parse=parse_allocator_config,
        default=AllocatorConfig(),
        shown_default="no limits",
        accepts="`key=value,key=value`",
        meaning="`kMaxSplitSizeBytes`: cached blocks above this size are not split. "
        "`kMemoryFraction`: share of each core's HBM that may be reserved.",
    )


# Variables that C++ reads by itself, because it also runs without Python: what they accept,
# their default, and what they mean.
NATIVE: dict[str, tuple[str, str, str]] = {
    "NEURON_HOST_ISA": (
        "`avx2`, `avx512`, `avx512_bf16`",
        "the best that this CPU has",
        "Instruction set of the host kernels, to try what a smaller CPU would do.",
    ),
}

# Variables of AWS's stack that need nothing here, and why.
WITHOUT_EFFECT: dict[str, str] = {
    "TORCH_NEURONX_FALLBACK_ONLY_FOR_UNIMPLEMENTED_OPS": "always so here: an operation that fails "
    "raises, it is never tried again elsewhere",
    "TORCH_NEURONX_CONTIGUOUS_FALLBACK_FATAL": "there is no such fallback: strides are native",
    "NEURON_FALLBACK_ENABLED": "nothing is copied to another device to run there",
    "TORCH_NEURONX_ENABLE_STACK_TRACE": "always on here: an asynchronous error names the Python "
    "line that queued the operation",
    "TORCH_NEURONX_ENABLE_ASYNC_NRT": "queues are always asynchronous here",
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "PyTorch's own: 0 means that `import torch` alone does not "
    "load the device",
}


def environment(changes: Mapping[str, str | None]) -> dict[str, str]:
    """This process's environment with `changes`, for a child process; None leaves one out."""
    merged = {**os.environ, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def adopt(changes: Mapping[str, str | None]) -> None:
    """Make `environment(changes)` this process's own and read the settings again."""
    merged = environment(changes)
    os.environ.clear()
    os.environ.update(merged)
    current.cache_clear()


def launched_as() -> tuple[int, int]:
    """Rank and world size as torchrun tells its processes; (0, 1) without it.

    Raises:
        SettingError: one of the two is not a number, or they do not fit each other.
    """
    rank, size = os.environ.get("RANK", "0"), os.environ.get("WORLD_SIZE", "1")
    if not (rank.isdecimal() and size.isdecimal() and int(rank) < int(size)):
        raise SettingError(
            f"RANK={rank} and WORLD_SIZE={size} name no process; RANK counts from 0 to "
            "WORLD_SIZE - 1."
        )
    return int(rank), int(size)


def variables() -> dict[str, Variable]:
    """The variables by name, in the order of `Settings`."""
    rows: dict[str, Variable] = {}
    for field in dataclasses.fields(Settings):
        row: Variable = field.metadata["variable"]
        if row.name in rows:
            raise AssertionError(f"{row.name} is declared twice")
        rows[row.name] = row
    return rows


def read(environ: Mapping[str, str]) -> Settings:
    """Read all settings from `environ`.

    Raises:
        SettingError: a value cannot be; the message names the variable and what to write.
    """
    values: dict[str, Any] = {}
    for field in dataclasses.fields(Settings):
        row: Variable = field.metadata["variable"]
        text = environ.get(row.name)
        if text is None or (text == "" and row.parse is not parse_flag):
            continue
        try:
            values[field.name] = row.parse(text)
        except SettingError as error:
            raise SettingError(f"{row.name}={text}: {error}") from None
    _warn_about_misspellings(environ)
    return Settings(**values)


@functools.cache
def current() -> Settings:
    """The settings of this process, read once."""
    return read(os.environ)


def _warn_about_misspellings(environ: Mapping[str, str]) -> None:
    known = (*variables(), *NATIVE, *WITHOUT_EFFECT)
    for name in environ:
        if not name.startswith(("TORCH_NEURONX_", "NEURON_RT_", "NEURON_")) or name in known:
            continue
        hint = _slip_of_the_finger(name, known)
        if hint:
            warnings.warn(f"{name} is set but unknown.{hint}", stacklevel=4)


def _slip_of_the_finger(name: str, known: tuple[str, ...]) -> str:
    """Like `did_you_mean`, but only for what must be a slip of the finger.

    Other packages have variables of these prefixes too, and AWS has many.
    """
    for other in known:
        if abs(len(other) - len(name)) <= 1 and _edits(name, other) <= 2:
            return f" Did you mean {other!r}?"
    return ""


def _edits(left: str, right: str) -> int:
    """Edit distance."""
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        diagonal, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (a != b))
    return row[-1]


def as_markdown() -> str:
    """The page docs/env_vars.md."""
    lines = [
        "# Environment variables",
        "",
        "Written by `make docs` from `src/torch_neuronx/settings.py`, which alone reads them,",
        "once, when the package is imported; only `NEURON_HOST_ISA` is read by the host kernels.",
        "A value that cannot be is an error that says what to write. A name that is one slip away",
        "from a known one is a warning.",
        "",
        "| variable | accepts | default | meaning |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| `{row.name}` | {row.accepts} | {row.default} | {row.meaning} |"
        for row in variables().values()
    ]
    lines += [
        f"| `{name}` | {accepts} | {default} | {meaning} |"
        for name, (accepts, default, meaning) in NATIVE.items()
    ]
    lines += [
        "",
        "## Known, without effect",
        "",
        "Recipes for AWS's stack set these; they may stay set.",
        "",
        "| variable | why nothing is needed |",
        "|---|---|",
    ]
    lines += [f"| `{name}` | {why} |" for name, why in WITHOUT_EFFECT.items()]
    return "\n".join(lines) + "\n"

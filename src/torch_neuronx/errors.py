"""Errors of the device layer, one class per user mistake. The runtime's own are raised by C++."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SettingError(ValueError):
    """An environment variable, or an argument of the same meaning, has a value that cannot be."""


class DriverUnavailableError(RuntimeError):
    """The chosen driver exists in the design but cannot run here."""


class BuildError(ImportError):
    """The C++ extension is missing or was built for another PyTorch."""


class WrongDeviceError(ValueError):
    """A device of another type was given where a neuron device is needed."""


class BadForkError(RuntimeError):
    """The device is used in a forked child although the parent had already used it."""


class ClockError(RuntimeError):
    """The modelled clock cannot say what was asked."""


class DryValueError(RuntimeError):
    """A program under the driver "dry" asks for a value, and none was supplied."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence with the closest known name and a leading space, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f" Did you mean {close[0]!r}?" if close else ""


class OptionError(ValueError):
    """A mode or option of torch.compile that does not exist."""


class TileKernelError(ValueError):
    """A tile kernel called with tensors, or made an operator, in a way that cannot be."""

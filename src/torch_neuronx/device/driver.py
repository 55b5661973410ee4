"""Which driver runs the work, and on which modelled machine. Nothing is launched here."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import overload

from torch_neuronx import settings
from torch_neuronx.device.platform import Platform, resolve
from torch_neuronx.errors import DriverUnavailableError

_MISSING = {
    "dry": "it would allocate addresses only and run shape inference",
    "nrt": "it would compile with neuronx-cc and run on the chip through libnrt",
}


def check_available(name: str) -> str:
    """Return the driver's name.

    Raises:
        SettingError: there is no such driver.
        DriverUnavailableError: it exists in the design only.
    """
    name = settings.parse_driver(name)
    if name != "host":
        raise DriverUnavailableError(
            f"The driver {name!r} is not available yet ({_MISSING[name]}). "
            "Use the driver 'host': unset NEURON_DRIVER or set it to host."
        )
    return name


@functools.cache
def platform() -> Platform:
    """The modelled machine of this process, fixed when the package is imported."""
    return resolve(settings.current())


@overload
def driver(name: None = None) -> str: ...
@overload
def driver(name: str) -> AbstractContextManager[str]: ...
def driver(name: str | None = None) -> str | AbstractContextManager[str]:
    """Name the driver in use, or run a block under the driver `name`.

    Raises:
        SettingError: there is no such driver.
        DriverUnavailableError: it cannot run here.
    """
    if name is None:
        return settings.current().driver
    return _under(check_available(name))


@contextmanager
def _under(name: str) -> Iterator[str]:
    # One driver runs here so far, so there is nothing to exchange.
    yield name

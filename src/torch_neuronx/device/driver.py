"""Which driver runs the work, and on which modelled machine. Nothing is launched here."""

from __future__ import annotations

import functools
import gc
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import overload

from torch_neuronx import _C, settings
from torch_neuronx.device.cores import _lazy_init
from torch_neuronx.device.platform import Platform, resolve
from torch_neuronx.errors import DriverUnavailableError

_RELEASE_SECONDS = 0.2
_MISSING = {
    "nrt": "it would compile with neuronx-cc and run on the chip through libnrt",
}


def check_available(name: str) -> str:
    """Return the driver's name.

    Raises:
        SettingError: there is no such driver.
        DriverUnavailableError: it exists in the design only.
    """
    name = settings.parse_driver(name)
    if name in _MISSING:
        raise DriverUnavailableError(
            f"The driver {name!r} is not available yet ({_MISSING[name]}). "
            "Use the driver 'host', or 'dry' for modelled time and memory without values: set "
            "NEURON_DRIVER to host or dry."
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

    Another driver may only begin, and end, while no neuron tensor is alive: what one driver
    allocated means nothing to the other. Code in a function leaves none behind. A block under
    "dry" that leaves some ends with an error; the driver before it is back with the last of them.

    Raises:
        SettingError: there is no such driver.
        DriverUnavailableError: it cannot run here.
        RuntimeError: tensors are alive on entering or leaving the block.
    """
    if name is None:
        return "dry" if _C._is_dry() else "host"
    return _under(check_available(name))


@contextmanager
def _under(name: str) -> Iterator[str]:
    before = driver()
    use(name)
    try:
        yield name
    except BaseException:
        # Its frames may hold tensors, and it says more than that they do.
        _end(before)
        raise
    if (alive := _end(before)) is not None:
        raise alive


def _end(before: str) -> RuntimeError | None:
    try:
        use(before)
    except RuntimeError as error:
        if before == "dry":
            return error
        _C._leave_dry_when_free()
        return RuntimeError(
            f"{error} The process is under the driver 'dry' until the last of them is gone."
        )
    return None


def use(name: str) -> None:
    """Make `name` the driver of this process; the modelled clock always runs under "dry".

    Raises:
        RuntimeError: tensors are alive.
    """
    if name == driver():
        return
    _lazy_init()
    # Exceptions and backward threads may hold tensors a moment longer.
    deadline = time.monotonic() + _RELEASE_SECONDS
    while True:
        gc.collect()
        try:
            _C._set_driver(name)
            break
        except RuntimeError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    if name == "dry":
        _C._observer_start()
    else:
        _C._observer_stop()

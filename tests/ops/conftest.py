"""Settings of the op tests: the sweep marker, one thread, a limit for a test that hangs."""

from __future__ import annotations

import faulthandler
import warnings
from collections.abc import Iterator

import pytest
import torch

# No op test takes this long; a hang in C++ would otherwise end only with the machine.
_HANG_S = 300.0


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker of what the sampled tenth leaves out."""
    config.addinivalue_line("markers", "sweep: the nine tenths of the op tests; `make test-all`")


@pytest.fixture(autouse=True)
def _op_test() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    faulthandler.dump_traceback_later(_HANG_S, exit=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    faulthandler.cancel_dump_traceback_later()
    torch.set_num_threads(threads)

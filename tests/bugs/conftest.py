"""A limit for a replayed bug that hangs."""

from __future__ import annotations

import faulthandler
import warnings
from collections.abc import Iterator

import pytest

_HANG_S = 300.0


@pytest.fixture(autouse=True)
def _replay() -> Iterator[None]:
    faulthandler.dump_traceback_later(_HANG_S, exit=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    faulthandler.cancel_dump_traceback_later()

"""`nki.language.dtypes`: the dtype names again, as the public test harness imports them."""

from __future__ import annotations

from nki.dtype import *  # noqa: F403

"""Imports torch once, so that an extension that does not load is one error and not one per file."""

from __future__ import annotations

import torch  # noqa: F401

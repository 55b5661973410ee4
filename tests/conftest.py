"""Fixtures of all tests."""

from __future__ import annotations

import sys
from pathlib import Path

# Tests import their neighbours by path (tests/policy/sources.py), not through a package.
sys.path.insert(0, str(Path(__file__).parent))

"""The one error of the demo: a sentence for the person at the terminal."""

from __future__ import annotations


class DemoError(RuntimeError):
    """Something the user can put right; the message says what and how."""

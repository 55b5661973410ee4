"""`nki.builtin`: the name under which the public test harness expects the language's builtins."""

from __future__ import annotations

from nki.language import device_print, range, tile_size

__all__ = ["device_print", "range", "tile_size"]

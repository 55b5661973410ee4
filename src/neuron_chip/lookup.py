"""Find a row by name, or say which names exist. No rows live here."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

Row = TypeVar("Row")


class UnknownNameError(ValueError):
    """A name that no row of a table carries."""


def find(table: Mapping[str, Row], name: str, *, kind: str) -> Row:
    """Return the row of `table` called `name`, ignoring case.

    Raises:
        UnknownNameError: no such row; the message lists what exists and the closest name.
    """
    row = table.get(name)
    if row is None:
        row = table.get(name.strip().lower())
    if row is not None:
        return row
    import difflib  # only the error path pays for it

    close = difflib.get_close_matches(name.strip().lower(), list(table), n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise UnknownNameError(f"There is no {kind} {name!r}.{hint} Known: {', '.join(table)}.")

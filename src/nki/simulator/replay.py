"""Replay of a specialised kernel: everything that can be decided once is decided here."""

from __future__ import annotations

from collections.abc import Sequence

from nki.program.ir import Program
from nki.simulator.memory import Machine
from nki.simulator.run import run


class Replay:
    """The programs of one specialisation, ready to run again and again."""

    def __init__(self, programs: Sequence[Program]) -> None:
        self.programs = list(programs)

    def run(self, machines: Sequence[Machine]) -> None:
        """Execute on fresh machines whose arguments are bound."""
        run(self.programs, machines)

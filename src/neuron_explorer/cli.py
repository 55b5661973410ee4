"""The command `neuron-explorer`. Each subcommand is one function here; the work is elsewhere."""

from __future__ import annotations

import subprocess
import sys

_USAGE = """usage: neuron-explorer plan [options] SCRIPT [arguments]

  plan   time, memory and cost of a program on Trainium instances, without one
         (neuron-explorer plan --help)
"""


def plan(arguments: list[str]) -> int:
    """Start the planner, which lives in torch_neuronx, in a process of its own."""
    command = [sys.executable, "-m", "torch_neuronx.planner", *arguments]
    return subprocess.run(command, check=False).returncode


COMMANDS = {"plan": plan}


def main(arguments: list[str] | None = None) -> int:
    """Run the subcommand that the command line names."""
    given = sys.argv[1:] if arguments is None else arguments
    if not given or given[0] in ("-h", "--help"):
        print(_USAGE, end="")
        return 0
    command = COMMANDS.get(given[0])
    if command is None:
        print(
            f"neuron-explorer: there is no command {given[0]!r}. Commands: {', '.join(COMMANDS)}.",
            file=sys.stderr,
        )
        return 2
    return command(given[1:])


if __name__ == "__main__":
    sys.exit(main())

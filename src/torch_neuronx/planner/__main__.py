"""The command line of the planner: `neuron-explorer plan`, or `python -m torch_neuronx.planner`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from neuron_chip import DEFAULT_INSTANCE, UnknownNameError
from neuron_chip.prices import PRICES, with_overrides
from torch_neuronx.planner.page import plan_page
from torch_neuronx.planner.request import DEFAULT_GPUS, PlanError, plan
from torch_neuronx.planner.result import Plan
from torch_neuronx.planner.sweep import sweep
from torch_neuronx.planner.text import sweep_text

T = TypeVar("T")


def parser() -> argparse.ArgumentParser:
    """The options, in the order of their use."""
    options = argparse.ArgumentParser(
        prog="neuron-explorer plan",
        description="Run a program dry and say what a step of it takes on Trainium instances.",
        epilog="Options of the planner come before the script, those of the script after it.",
    )
    options.add_argument(
        "--instance", action="append", metavar="NAME", help=f"repeat it; {DEFAULT_INSTANCE}"
    )
    options.add_argument("--world-size", type=int, default=1, help="ranks, one per logical core")
    options.add_argument("--rank", type=int, default=0, help="the rank to plan")
    options.add_argument("--tp", type=int, default=1, help="ranks that share a tensor")
    options.add_argument("--pp", type=int, default=1, help="stages of a pipeline")
    options.add_argument("--steps", type=int, default=2, help="steps to run; the last is shown")
    options.add_argument(
        "--software", default="eager", help="eager (a start per operation) or compiled (per graph)"
    )
    options.add_argument("--value", type=float, default=1.0, help="what .item() gives")
    options.add_argument(
        "--size",
        action="append",
        default=[],
        metavar="OP=N",
        help="entries of results whose size depends on data; *=N for all",
    )
    options.add_argument(
        "--gpu", action="append", metavar="NAME", help="to compare with; repeat it"
    )
    options.add_argument("--market", help="on_demand, capacity_block or spot")
    options.add_argument("--prices", type=Path, help="a TOML file with your prices")
    options.add_argument("--timeout", type=float, default=1800.0, help="seconds per instance")
    options.add_argument("--json", type=Path, metavar="FILE", help="write the plan as JSON")
    options.add_argument("--html", type=Path, metavar="FILE", help="write the plan as a page")
    options.add_argument(
        "--sweep",
        action="append",
        metavar="AXIS=1,2,4",
        help='try values of tp, pp, dp or any name; "{AXIS}" in the arguments stands for it',
    )
    options.add_argument("script", type=Path)
    options.add_argument("arguments", nargs=argparse.REMAINDER)
    return options


def main(argv: list[str] | None = None) -> int:
    """Plan or sweep, print, and write the files asked for; 2 for a wrong request, 1 if it fails."""
    given = parser().parse_args(argv)
    try:
        return _run(given)
    except (UnknownNameError, ValueError) as error:
        print(f"neuron-explorer plan: {error}", file=sys.stderr)
        return 2
    except PlanError as error:
        print(f"neuron-explorer plan: {error}", file=sys.stderr)
        return 1


def _run(given: argparse.Namespace) -> int:
    common = {
        "instances": given.instance or [DEFAULT_INSTANCE],
        "rank": given.rank,
        "steps": given.steps,
        "software": given.software,
        "value": given.value,
        "sizes": dict(_pair(text, int) for text in given.size),
        "gpus": given.gpu or DEFAULT_GPUS,
        "market": given.market,
        "prices": with_overrides(given.prices) if given.prices else PRICES,
        "timeout_seconds": given.timeout,
    }
    if given.sweep:
        axes = dict(_pair(text, _values) for text in given.sweep)
        layouts = sweep(given.script, given.arguments, axes, world_size=given.world_size, **common)
        print(sweep_text(layouts))
        if given.json:
            given.json.write_text(json.dumps([asdict(layout) for layout in layouts], indent=2))
        return 0 if any(layout.fits for layout in layouts) else 1
    if given.tp < 1 or given.pp < 1 or given.world_size % (given.tp * given.pp):
        raise ValueError(
            f"{given.world_size} ranks do not divide into groups of tp {given.tp} times pp "
            f"{given.pp}. Give a --world-size that is a multiple of their product."
        )
    found: Plan = plan(
        given.script,
        given.arguments,
        world_size=given.world_size,
        replicas=given.world_size // (given.tp * given.pp),
        **common,
    )
    print(found)
    if given.json:
        given.json.write_text(found.to_json())
    if given.html:
        given.html.write_text(plan_page(found), encoding="utf-8")
    return 0


def _pair(text: str, read: Callable[[str], T]) -> tuple[str, T]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"{text!r} is not NAME=VALUE, such as tp=1,2,4 or aten::nonzero=128.")
    try:
        return name, read(value)
    except ValueError:
        raise ValueError(f"{value!r} in {text!r} is no whole number or list of them.") from None


def _values(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())

"""Signatures to Work and Time, once each. The C++ observer asks for the price of new ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

from neuron_chip import Chip, Work, cost
from neuron_chip.cost import Time
from neuron_chip.counts import launch
from torch_neuronx import _C
from torch_neuronx.clock import configured
from torch_neuronx.errors import ClockError
from torch_neuronx.ops.costs import Call, Machine, work_of

# How work reaches the chip: op by op, or as graphs whose starts are reported by themselves.
SOFTWARE = ("eager", "compiled")
GRAPH_LAUNCH = "neuron::graph_launch"


@dataclass(frozen=True, kw_only=True)
class Priced:
    """What one call of a signature costs."""

    call: Call
    work: Work
    time: Time

    @property
    def launch_seconds(self) -> float:
        """The host's part: the start of the operation."""
        return self.time.busy_seconds.get("launch", 0.0)


_software = "eager"
_priced: dict[int, Priced] = {}
_failures: list[Exception] = []
# Graphs have no op calls of their own: their work by the name they run under.
_graphs: dict[str, Work] = {}


def use_software(name: str) -> None:
    """Price what is not priced yet as "eager" or "compiled" software starts it.

    Raises:
        ValueError: it is neither.
    """
    global _software
    if name not in SOFTWARE:
        raise ValueError(f"Software {name!r} is not one of {', '.join(SOFTWARE)}.")
    _software = name


def start_graph(device: int) -> None:
    """A compiled graph is started on the default stream; nothing happens when eager."""
    if _software == "compiled":
        _C._observe(GRAPH_LAUNCH, [], device, 0)


def machine() -> Machine:
    """The machine whose time is modelled."""
    instance, lnc = configured.chosen()
    return Machine(instance=instance, lnc=lnc)


def name_graph(name: str, work: Work) -> None:
    """State the work of a compiled graph, which runs as one operation called `name`."""
    _graphs[name] = work


def priced(signature: int) -> Priced:
    """The price of a signature on this process's machine."""
    known = _priced.get(signature)
    if known is None:
        call = Call.from_parts(_C._signature(signature))
        work = _work_of(call)
        known = _priced[signature] = Priced(
            call=call, work=work, time=time_of(work, machine().chip, lnc=machine().lnc)
        )
    return known


def _work_of(call: Call) -> Work:
    if call.op == GRAPH_LAUNCH:
        return launch()
    if call.op in _graphs:
        return _graphs[call.op]
    work = work_of(call, machine())
    # Inside a graph operations start each other.
    return replace(work, launches=0.0) if _software == "compiled" else work


def time_of(work: Work, chip: Chip, *, lnc: int | None = None) -> Time:
    """The time of one call on one logical core."""
    return cost.price(work, chip, lnc=lnc, software=_software)


def raise_failure() -> None:
    """Raise what went wrong while a price was asked for from inside an operator.

    Raises:
        ClockError: a cost rule failed; its own error is the cause.
    """
    if _failures:
        first = _failures[0]
        _failures.clear()
        raise ClockError(f"The cost of an operator could not be found: {first}") from first


def price(signature: int) -> tuple[int, int, bool]:
    """Launch and work in nanoseconds, and whether the host waits; what the observer asks for."""
    # PyTorch would swallow an error here, so it is kept for the next reading of the clock.
    try:
        found = priced(signature)
    except Exception as error:  # noqa: BLE001
        _failures.append(error)
        return 0, 0, False
    launch_ns = round(1e9 * found.launch_seconds)
    total_ns = round(1e9 * found.time.seconds)
    return launch_ns, total_ns - launch_ns, found.work.read_backs > 0

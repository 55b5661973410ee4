"""The one event schema, versioned, and its JSON file. No analysis happens here.

    runtime recorder --> torch_neuronx.profiler --+
    nki scheduler ------> nki.profile ------------+--> Trace --> file --> neuron_explorer
    planner ------------------------------------- +

A trace file is one JSON object: `schema`, `version`, `metadata`, and the event table as columns
(one list per field), which keeps files small and loads fast.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCHEMA = "neuron-trace"
VERSION = 1

KINDS = (
    "op",  # a framework operation, from launch to completion
    "instruction",  # one instruction on an engine
    "dma",  # one transfer
    "collective",
    "copy",  # between host and device
    "launch",  # host side of a start
    "sync",  # the host waits
    "memory",  # `bytes` allocated (positive) or freed (negative)
    "annotation",  # a range that the user or the framework named
)
LANES = (
    *("tensor", "vector", "scalar", "gpsimd", "sync", "dma", "collective", "host", "memory"),
    "stream",
)


class TraceFormatError(ValueError):
    """A file that is not a trace this version can read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """Something that happened, or that the model says would happen, on one lane."""

    id: int
    kind: str
    name: str
    lane: str
    start_ns: float
    duration_ns: float
    modelled: bool = False
    """Whether the times come from the model of the chip rather than from a clock."""
    rank: int = 0
    core: int = 0
    stream: int = 0
    queue: int | None = None
    correlation: int | None = None
    """The id of the event that caused this one."""
    depends_on: tuple[int, ...] = ()
    flops: float = 0.0
    dtype: str | None = None
    hbm_read_bytes: float = 0.0
    hbm_write_bytes: float = 0.0
    sbuf_bytes: float = 0.0
    psum_bytes: float = 0.0
    bytes: float = 0.0
    address: int | None = None
    default_rule: bool = False
    module: str | None = None
    python_file: str | None = None
    python_line: int | None = None
    shapes: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"Event kind {self.kind!r} is not one of {', '.join(KINDS)}.")
        if self.lane not in LANES:
            raise ValueError(f"Event lane {self.lane!r} is not one of {', '.join(LANES)}.")
        if self.duration_ns < 0:
            raise ValueError(f"Event {self.name!r} lasts {self.duration_ns} ns; that is negative.")

    @property
    def end_ns(self) -> float:
        """When it ended."""
        return self.start_ns + self.duration_ns


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """What the events were recorded on."""

    chip: str
    instance: str | None = None
    lnc: int | None = None
    driver: str = "host"
    clock: str = "modelled"
    """"modelled" or "host": what `start_ns` of the device lanes counts."""
    rank: int = 0
    world_size: int = 1
    writer: str = ""
    created: str = ""
    """ISO 8601 time."""
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Trace:
    """Metadata and events, ordered by start."""

    metadata: Metadata
    events: tuple[Event, ...]

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    @property
    def duration_ns(self) -> float:
        """From the first start to the last end."""
        if not self.events:
            return 0.0
        start = min(event.start_ns for event in self.events)
        return max(event.end_ns for event in self.events) - start


_FIELDS = tuple(f.name for f in fields(Event))
_DEFAULTS: dict[str, Any] = {
    f.name: f.default_factory() if f.default_factory is not MISSING else f.default
    for f in fields(Event)
    if f.default is not MISSING or f.default_factory is not MISSING
}


def to_json(trace: Trace) -> dict[str, Any]:
    """The trace as plain data; columns that hold only defaults are left out."""
    columns: dict[str, list[Any]] = {}
    for name in _FIELDS:
        values = [getattr(event, name) for event in trace.events]
        if name in _DEFAULTS and all(value == _DEFAULTS[name] for value in values):
            continue
        columns[name] = [list(value) if isinstance(value, tuple) else value for value in values]
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "metadata": asdict(trace.metadata),
        "num_events": len(trace.events),
        "events": columns,
    }


def from_json(data: dict[str, Any], *, name: str = "the trace") -> Trace:
    """Build a trace from plain data; unknown columns of later minor writers are ignored."""
    if data.get("schema") != SCHEMA:
        raise TraceFormatError(
            f"{name} has schema {data.get('schema')!r}; a trace file says {SCHEMA!r}. "
            "Write one with neuron_chip.trace.write."
        )
    version = data.get("version")
    if not isinstance(version, int) or not 1 <= version <= VERSION:
        raise TraceFormatError(
            f"{name} has version {version!r}; this reader knows 1 to {VERSION}. "
            "Update torch-neuronx or record again."
        )
    columns = {key: values for key, values in data["events"].items() if key in _FIELDS}
    count = data["num_events"]
    for key, values in columns.items():
        if len(values) != count:
            raise TraceFormatError(
                f"{name}: column {key!r} has {len(values)} of {count} entries; the file is damaged."
            )
    if "depends_on" in columns:
        columns["depends_on"] = [tuple(value) for value in columns["depends_on"]]
    keys = list(columns)
    events = [
        Event(**dict(zip(keys, row, strict=True))) for row in zip(*columns.values(), strict=True)
    ]
    known = {f.name for f in fields(Metadata)}
    metadata = Metadata(**{k: v for k, v in data["metadata"].items() if k in known})
    return Trace(metadata=metadata, events=tuple(events))


def write(trace: Trace, path: Path) -> None:
    """Write a trace file; a name that ends in .gz is compressed."""
    text = json.dumps(to_json(trace), separators=(",", ":"))
    if path.suffix == ".gz":
        import gzip

        with gzip.open(path, "wt", encoding="utf-8") as file:
            file.write(text)
    else:
        path.write_text(text, encoding="utf-8")


def read(path: Path) -> Trace:
    """Read a trace file, compressed or not."""
    if path.suffix == ".gz":
        import gzip

        with gzip.open(path, "rt", encoding="utf-8") as file:
            text = file.read()
    else:
        text = path.read_text(encoding="utf-8")
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise TraceFormatError(f"{path} is not JSON ({error}); is it a trace file?") from error
    if not isinstance(data, dict):
        raise TraceFormatError(f"{path} holds a {type(data).__name__}; a trace is an object.")
    return from_json(data, name=str(path))

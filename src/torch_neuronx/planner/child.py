"""The process that runs a program dry and writes the report of one of its steps.

python -m torch_neuronx.planner.child REQUEST.json RESULT.json
"""

from __future__ import annotations

import json
import runpy
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from torch_neuronx import _C, registration
from torch_neuronx.clock import memory_peak, modules
from torch_neuronx.clock.measurement import between
from torch_neuronx.clock.pricing import machine, raise_failure, use_software
from torch_neuronx.dry import dry_values
from torch_neuronx.planner.steps import EnoughStepsError, StepFinder

_MOST_ROWS = 20
_NO_LIMIT_BYTES = 1 << 44


def main(request_path: str, result_path: str) -> int:
    """Run the request; an error of the program becomes the result's `error`."""
    request = json.loads(Path(request_path).read_text())
    begun = time.perf_counter()
    _lift_memory_limit()
    try:
        result = run(request)
        result["host_seconds"] = time.perf_counter() - begun
    except Exception as error:  # noqa: BLE001  # whatever the program raises is reported
        traceback.print_exc()
        result = {"error": f"{type(error).__name__}: {error}"}
    Path(result_path).write_text(json.dumps(result))
    return 0


def _lift_memory_limit() -> None:
    # What does not fit is still planned, and reported as such.
    registration.model_machine(hbm_bytes_per_core=_NO_LIMIT_BYTES)


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Run the program of a request until enough steps are seen; plain data of the last one."""
    device = 0
    use_software(request["software"])
    kinds = memory_peak.Kinds(device)
    marked = "mark_step" in Path(request["script"]).read_text(encoding="utf-8")
    finder = StepFinder(request["steps"], device, marked=marked)
    before = _C._live_blocks(device)
    _C._record_allocations(True)
    kinds.start()
    finder.start()
    script = request["script"]
    sys.argv = [script, *request["arguments"]]
    sys.path[0] = str(Path(script).resolve().parent)
    try:
        with (
            modules.tracked(kinds.module_called, finder.module_called),
            dry_values(request["value"], request["sizes"]),
        ):
            runpy.run_path(script, run_name="__main__")
    except EnoughStepsError:
        pass
    except SystemExit as stop:
        if stop.code not in (None, 0):
            raise RuntimeError(f"the program ended with status {stop.code}") from None
    finally:
        finder.stop()
        kinds.stop()
        _C._record_allocations(False)
    first, last, units, unit, found_by = finder.last_step()
    raise_failure()
    peak = memory_peak.find_peak(before, _C._allocations(device), kinds, _C._python_lines())
    step = between(first, last)
    low, high = step.range
    return {
        "found_by": found_by,
        "unit": unit,
        "units": units,
        "step_seconds": step.time,
        "low_seconds": low,
        "high_seconds": high,
        "default_share": step.default_share,
        "mfu": step.mfu,
        "mbu": step.mbu,
        "hbm_peak_bytes": peak.num_bytes,
        "hbm_capacity_bytes": machine().chip.hbm_bytes_per_logical_core(lnc=machine().lnc),
        "hbm_by_kind": peak.by_kind(),
        "alive_at_peak": [vars(row) for row in peak.live[:_MOST_ROWS]],
        "engine_seconds": dict(step.breakdown.engine),
        "op_seconds": _first(step.breakdown.op),
        "module_seconds": _first(step.breakdown.module),
        "line_seconds": _first(step.breakdown.python_line),
        "default_ops": _first(step.default_ops),
        "gpu_seconds": {name: step.seconds_on(name) for name in request["gpus"]},
        "cores": machine().instance.logical_cores(lnc=machine().lnc),
    }


def _first(sums: Any) -> dict[str, float]:
    return dict(list(sums.items())[:_MOST_ROWS])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))

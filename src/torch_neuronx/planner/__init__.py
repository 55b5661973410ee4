"""What a program would take on instances that you have not rented: it runs dry, unmodified.

`plan` starts a child per instance (`request`, `process`, `child`), which finds the steps of the
program (`steps`) and reports one (`result`); `text` and `page` show the reports, `sweep` tries
layouts.
"""

from __future__ import annotations

from torch_neuronx.planner.request import PlanError, plan
from torch_neuronx.planner.result import GpuResult, Plan, PlanResult
from torch_neuronx.planner.steps import mark_step
from torch_neuronx.planner.sweep import Layout, sweep

__all__ = [
    "GpuResult",
    "Layout",
    "Plan",
    "PlanError",
    "PlanResult",
    "mark_step",
    "plan",
    "sweep",
]

"""`nki.compiler`: options of AWS's compiler, kept so that kernels that set them still run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class CompileConfig:
    """Options that steer code generation; the simulator's values do not depend on them."""

    address_rotation: bool | None = None
    non_ssa_legalization: bool | None = None
    dead_code_elim: bool | None = None
    barrier_check: bool | None = None


@dataclass(frozen=True, kw_only=True)
class SpecializationConfig:
    """Options of specialisation."""

    allow_nested_config_override: bool = False


def skip_middle_end_transformations(fn: Any) -> Any:
    """An older decorator; it has no effect."""
    return fn


enable_stack_allocator = skip_middle_end_transformations

"""What each operator costs the chip: rules from a call's shapes to counted work, one file a kind.

In reading order: `call` (what a rule sees), `registry` (finding the rule), then the rules.
"""

from __future__ import annotations

from torch_neuronx.ops.costs import (  # noqa: F401  # each registers its rules
    attention,
    collective,
    convolution,
    elementwise,
    matmul,
    movement,
    rows,
)
from torch_neuronx.ops.costs.call import Call, Machine, Tensor
from torch_neuronx.ops.costs.registry import base_name, has_rule, is_free, work_of

__all__ = ["Call", "Machine", "Tensor", "base_name", "has_rule", "is_free", "work_of"]

"""Rules by operator, and the default for the rest. A rule serves all overloads of a name."""

from __future__ import annotations

from collections.abc import Callable

from neuron_chip import Work
from neuron_chip.counts import default_rule, launch
from torch_neuronx.ops.costs.call import Call, Machine

Rule = Callable[[Call, Machine], Work]

_RULES: dict[str, Rule] = {}

# Metadata only: nothing is started on the chip.
_FREE = frozenset(
    {
        *("empty", "empty_strided", "empty_like", "new_empty", "_efficientzerotensor"),
        *("as_strided", "view", "_reshape_alias", "unfold", "expand", "permute", "transpose", "t"),
        *("select", "slice", "split", "split_with_sizes", "squeeze", "unsqueeze", "diagonal"),
        *("alias", "detach", "_unsafe_view", "lift_fresh", "view_as_real", "view_as_complex"),
        *("resize", "set", "is_set_to", "record_stream", "_fused_sdp_choice", "_nested_view"),
    }
)


def base_name(op: str) -> str:
    """`add` of aten::add_.Tensor: without namespace, overload and the mark of in-place ops."""
    name = op.rpartition("::")[2].partition(".")[0]
    return name.rstrip("_") or name


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for operators of these base names."""

    def register(function: Rule) -> Rule:
        for name in names:
            assert name not in _RULES, f"{name} has two rules"
            _RULES[name] = function
        return function

    return register


def is_free(op: str) -> bool:
    """Whether the operator changes metadata only."""
    return base_name(op) in _FREE


def has_rule(op: str) -> bool:
    """Whether a rule was written for the operator, free ones included."""
    return is_free(op) or base_name(op) in _RULES


def work_of(call: Call, machine: Machine) -> Work:
    """The work of one call, its launch included; the default rule where none fits the call."""
    if is_free(call.op):
        return Work()
    written = _RULES.get(base_name(call.op))
    if written is not None:
        try:
            return written(call, machine) + launch()
        except (IndexError, TypeError):
            pass  # an overload of other arguments
    return _default(call, machine) + launch()


def _default(call: Call, machine: Machine) -> Work:
    return default_rule(
        sum(each.num_bytes for each in call.inputs),
        sum(each.num_bytes for each in call.outputs),
        chip=machine.chip,
    )

"""Element-wise functions, of one tensor or of lists of them, and the optimizers' fused steps."""

from __future__ import annotations

from collections.abc import Sequence

from neuron_chip import Work, total
from neuron_chip.counts import elementwise
from torch_neuronx.ops.costs.call import Call, Machine, Tensor
from torch_neuronx.ops.costs.registry import Rule, rule

# Operators as functions of `neuron_chip.counts.elementwise`, done one after the other on the chip.
# A name with "_scalar" is what a two-operand function becomes when one operand is a number.
_FUNCTIONS: dict[str, tuple[str, ...]] = {
    **{
        name: (name,)
        for name in (
            *("exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "silu", "relu", "square"),
            *("softplus", "sign", "abs", "neg", "clamp", "sin", "cos", "erf", "where"),
            *("add", "sub", "mul", "div", "maximum", "minimum"),
        )
    },
    "rsub": ("sub",),
    "true_divide": ("div",),
    "reciprocal": ("div",),
    "pow": ("square",),
    "log1p": ("add_scalar", "log"),
    "expm1": ("exp", "add_scalar"),
    "log2": ("log", "mul_scalar"),
    "exp2": ("mul_scalar", "exp"),
    "clamp_min": ("clamp",),
    "clamp_max": ("clamp",),
    "hardtanh": ("clamp",),
    "leaky_relu": ("relu", "mul", "add"),
    "elu": ("exp", "where"),
    "sgn": ("sign",),
    "fill": (),
    "zero": (),
    "masked_fill": ("where",),
    "tril": ("where",),
    "triu": ("where",),
    "isnan": ("compare",),
    "isfinite": ("compare",),
    "isinf": ("compare",),
    "eq": ("compare",),
    "ne": ("compare",),
    "lt": ("compare",),
    "le": ("compare",),
    "gt": ("compare",),
    "ge": ("compare",),
    "logical_and": ("logical",),
    "logical_or": ("logical",),
    "logical_xor": ("logical",),
    "logical_not": ("compare",),
    "bitwise_and": ("logical",),
    "bitwise_or": ("logical",),
    "bitwise_xor": ("logical",),
    "bitwise_not": ("logical",),
    "addcmul": ("mul", "mul_scalar", "add"),
    "addcdiv": ("div", "mul_scalar", "add"),
    "lerp": ("sub", "mul", "add"),
    "mse_loss": ("sub", "square"),
    # Backward: f'(x) from what was saved, times the gradient.
    "tanh_backward": ("square", "add_scalar", "mul"),
    "sigmoid_backward": ("add_scalar", "mul", "mul"),
    "threshold_backward": ("compare", "mul"),
    "silu_backward": ("sigmoid", "add_scalar", "mul", "add_scalar", "mul", "mul"),
    "gelu_backward": ("gelu_tanh", "square", "mul", "mul", "add", "mul"),
    "leaky_relu_backward": ("compare", "where", "mul"),
    "elu_backward": ("exp", "where", "mul"),
    "hardtanh_backward": ("compare", "compare", "mul"),
    "mse_loss_backward": ("sub", "mul_scalar", "mul"),
    "native_dropout_backward": ("mul", "mul_scalar"),
}
# With a number for the second operand these run in the fast one-operand form.
_WITH_NUMBER = {
    "add": "add_scalar",
    "sub": "add_scalar",
    "mul": "mul_scalar",
    "div": "mul_scalar",
    "maximum": "clamp",
    "minimum": "clamp",
}


def fused(
    functions: Sequence[str], inputs: Sequence[Tensor], out: Tensor, machine: Machine
) -> Work:
    """Functions over the elements of `out` in one pass over memory."""
    dtypes = [each.row.name for each in inputs if each.numel > 1] or [out.row.name]
    parts = [
        elementwise(name, out.numel, chip=machine.chip, inputs=dtypes[:2], output=out.row.name)
        for name in functions
    ]
    engines = total(Work(lanes=part.lanes, flops=part.flops) for part in parts)
    return engines + Work(
        hbm_read_bytes=sum(each.num_bytes for each in inputs), hbm_write_bytes=out.num_bytes
    )


def _of_numbers(functions: Sequence[str], operands: int) -> Sequence[str]:
    if operands >= 2:
        return functions
    return [_WITH_NUMBER.get(name, name) for name in functions]


def _reads_itself(name: str) -> bool:
    return name not in ("fill", "zero")


def _elementwise_rule(name: str, functions: tuple[str, ...]) -> Rule:
    def work(call: Call, machine: Machine) -> Work:
        out = call.outputs[0]
        # An `out=` argument is the result, not an operand.
        operands = call.inputs[:-1] if "out" in call.op.partition(".")[2] else call.inputs
        operands = operands if _reads_itself(name) else []
        wide = [each for each in operands if each.numel > 1]
        return fused(_of_numbers(functions, len(wide)), operands, out, machine)

    return work


def _list_rule(functions: tuple[str, ...], name: str) -> Rule:
    def work(call: Call, machine: Machine) -> Work:
        lists = [each for each in call.arguments if isinstance(each, tuple) and each]
        lists = [each for each in lists if all(isinstance(item, Tensor) for item in each)]
        if not _reads_itself(name):
            lists = lists[:1]
        operands = lists if _reads_itself(name) else []
        return total(
            fused(
                _of_numbers(functions, len(operands)),
                [each[index] for each in operands if index < len(each)],
                out,
                machine,
            )
            for index, out in enumerate(call.outputs)
        )

    return work


for _name, _functions in _FUNCTIONS.items():
    rule(_name)(_elementwise_rule(_name, _functions))
    rule(f"_foreach_{_name}")(_list_rule(_functions, _name))


@rule("gelu")
def _gelu(call: Call, machine: Machine) -> Work:
    form = "gelu_tanh" if call.argument(1) == "tanh" else "gelu_erf"
    return fused((form,), call.inputs[:1], call.outputs[0], machine)


@rule("_fused_adam", "_fused_adamw")
def _adam(call: Call, machine: Machine) -> Work:
    """Parameters, gradients and both moments are read; all but the gradients are written."""
    lists = [each for each in call.arguments[:4] if isinstance(each, tuple)]
    work = Work()
    for tensors in zip(*lists, strict=False):
        parameter, gradient, first, second = tensors
        work += fused(("adamw",), (parameter, gradient, first, second), parameter, machine)
        work += Work(hbm_write_bytes=first.num_bytes + second.num_bytes)
    return work


@rule("_fused_sgd")
def _sgd(call: Call, machine: Machine) -> Work:
    parameters, gradients = call.argument(0), call.argument(1)
    return total(
        fused(("mul_scalar", "add"), (parameter, gradient), parameter, machine)
        for parameter, gradient in zip(parameters, gradients, strict=True)
    )

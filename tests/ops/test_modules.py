"""Every module of torch.nn in every configuration of the wheel: forward, backward, state."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing._internal.common_modules import ModuleInfo, ModuleInput, module_db
from torch.utils._pytree import tree_leaves

from compare import assert_same
from ops.calls import Arguments, cotangent, outcome_of
from ops.catalogue import SEED, marked
from ops.exceptions import MODULE_SLACK_ULPS, RANDOM_MODULES
from ops.under_test import DEVICE, Placement, Truth

CASES = [
    marked(
        "module",
        f"{info.formatted_name}-{str(dtype).removeprefix('torch.')}-{mode}",
        info,
        dtype,
        mode == "train",
    )
    for info in module_db
    for dtype in (torch.float32, torch.bfloat16)
    if dtype in info.supported_dtypes("cpu") or dtype is torch.bfloat16
    for mode in (("train", "eval") if info.train_and_eval_differ else ("train",))
]


def inputs_of(info: ModuleInfo, dtype: torch.dtype, training: bool) -> list[ModuleInput]:
    torch.manual_seed(SEED)
    return info.module_inputs_func(
        info, device="cpu", dtype=dtype, requires_grad=True, training=training
    )


def built(info: ModuleInfo, given: ModuleInput, dtype: torch.dtype, training: bool) -> nn.Module:
    torch.manual_seed(SEED)
    arguments = given.constructor_input
    module = info.module_cls(*arguments.args, **arguments.kwargs)
    return module.to(dtype=dtype).train(training)


def step(module: nn.Module, given: ModuleInput, placement: Placement) -> dict[str, Any]:
    """Outputs, gradients and buffers after one forward and one backward pass."""
    arguments = given.forward_input
    call = Arguments(args=arguments.args, kwargs=arguments.kwargs).placed(placement)
    leaves = [t for t in call.tensors() if t.requires_grad]

    def run(*args: Any, **kwargs: Any) -> dict[str, Any]:
        outputs = module(*args, **kwargs)
        wanted = [x for x in tree_leaves(outputs) if isinstance(x, Tensor) and x.requires_grad]
        if wanted:
            torch.autograd.backward(wanted, [placement(cotangent(x)).to(x.dtype) for x in wanted])
        return {
            "outputs": [x.detach() for x in tree_leaves(outputs) if isinstance(x, Tensor)],
            "inputs": [t.grad for t in leaves],
            "parameters": {name: p.grad for name, p in module.named_parameters()},
            "buffers": dict(module.named_buffers()),
        }

    outcome = outcome_of(run, call)
    return {"error": type(outcome.error)} if outcome.error is not None else outcome.value


@pytest.mark.parametrize(("info", "dtype", "training"), CASES)
def test_module_gives_the_cpus_outputs_and_gradients(info, dtype, training):
    values = info.name not in RANDOM_MODULES or (not training and info.train_and_eval_differ)
    for number, given in enumerate(inputs_of(info, dtype, training)):
        if given.forward_input is None:
            continue
        try:
            module = built(info, given, dtype, training)
        except Exception as error:
            raise AssertionError(f"input {number} cannot be built on the CPU") from error

        def exact(module: nn.Module = module, given: ModuleInput = given) -> Any:
            return step(copy.deepcopy(module).double(), given, Truth())

        module_there = copy.deepcopy(module).to(DEVICE)
        expected = step(copy.deepcopy(module), given, Placement("cpu"))
        actual = step(module_there, given, Placement())
        if "error" in expected:
            assert actual == expected, f"input {number} ({given.desc}): the CPU raises {expected}"
            continue
        assert_same(
            actual,
            expected,
            truth=exact,
            values=values,
            slack_ulps=MODULE_SLACK_ULPS.get(info.name, 0.0),
            where=f"input {number} ({given.desc})",
        )

"""Every optimizer of torch.optim in every configuration of the wheel follows the CPU's path."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing._internal.common_optimizers import OptimizerInfo, OptimizerInput, optim_db

from compare import assert_same
from ops.catalogue import SEED, marked
from ops.under_test import DEVICE

STEPS = 3
IMPLEMENTATIONS = ("plain", "foreach", "fused")


def implementations(info: OptimizerInfo) -> list[str]:
    return [
        name
        for name in IMPLEMENTATIONS
        if name == "plain"
        or (name in info.supported_impls and (name != "fused" or "cpu" in info.supports_fused_on))
    ]


CASES = [
    marked(
        "optimizer",
        f"{info.name}-{implementation}-{dtype_name}",
        info,
        implementation,
        dtype,
        one_in=1,
    )
    for info in optim_db
    for implementation in implementations(info)
    for dtype_name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16))
]


def parameters(device: str, dtype: torch.dtype) -> list[Tensor]:
    """A matrix, a transposed matrix, a vector at an offset, a scalar."""
    torch.manual_seed(SEED)
    shapes = [torch.randn(5, 4), torch.randn(6, 3).t(), torch.randn(9)[2:], torch.randn(())]
    return [t.to(dtype).to(device).requires_grad_() for t in shapes]


# Muon takes matrices only; a scalar cannot be sparse.
_LIMITS = {"Muon": 2, "SparseAdam": 3}


def options_of(
    info: OptimizerInfo, given: OptimizerInput, implementation: str, device: str
) -> dict[str, Any]:
    """The configuration with one implementation chosen, its tensors on the device."""
    options = dict(given.kwargs)
    if implementation != "plain":
        options[implementation] = True
    elif "foreach" in info.supported_impls:
        options["foreach"] = False
    return {
        key: tuple(v.to(device) if isinstance(v, Tensor) else v for v in value)
        if isinstance(value, tuple)
        else value.to(device)
        if isinstance(value, Tensor)
        else value
        for key, value in options.items()
    }


def gradient(parameter: Tensor, step: int, sparse: bool) -> Tensor:
    values = torch.arange(parameter.numel(), dtype=torch.float32).add(step).cos()
    # In the parameter's own layout, as autograd makes it: the CPU's fused steps assume it.
    grad = torch.empty_like(parameter, device="cpu").copy_(values.reshape(parameter.shape))
    return (grad.to_sparse() if sparse else grad).to(parameter.device)


def path(
    info: OptimizerInfo, given: OptimizerInput, implementation: str, dtype: torch.dtype, device: str
) -> dict[str, Any]:
    """Parameters and optimizer state after a few steps."""
    sparse = info.only_supports_sparse_grads
    tensors = parameters(device, dtype)[: _LIMITS.get(info.name)]
    options = options_of(info, given, implementation, device)
    optimizer = info.optim_cls(tensors, **options)
    for step in range(STEPS):

        def closure(step: int = step) -> Tensor:
            for parameter in tensors:
                parameter.grad = gradient(parameter, step, sparse)
            return torch.ones((), device=device)

        closure()
        optimizer.step(closure if info.step_requires_closure else None)
    state = [dict(optimizer.state[p]) for p in tensors if p in optimizer.state]
    return {"parameters": [t.detach() for t in tensors], "state": state}


@pytest.mark.parametrize(("info", "implementation", "dtype"), CASES)
def test_optimizer_follows_the_cpus_path(info, implementation, dtype):
    for given in info.optim_inputs_func(device="cpu"):
        if given.kwargs.get("capturable") or given.kwargs.get("differentiable"):
            continue
        if implementation == "fused" and isinstance(given.kwargs.get("lr"), Tensor):
            continue
        try:
            expected = path(info, given, implementation, dtype, "cpu")
        except (RuntimeError, ValueError) as theirs:
            with pytest.raises(type(theirs)):
                path(info, given, implementation, dtype, DEVICE)
            continue
        actual = path(info, given, implementation, dtype, DEVICE)

        def exact(given: OptimizerInput = given) -> Any:
            return path(info, given, "plain", torch.float64, "cpu")

        assert_same(actual, expected, truth=exact, where=given.desc or "defaults")

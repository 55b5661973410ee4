"""One operator of PyTorch for each specialisation of a kernel, made when it is first called.

Its name carries a digest of what the kernel does, so a graph that was compiled and cached can
never call another kernel of the same name. Fake results come from the specialisation.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch

from nki.benchmark import seconds_of
from nki.interface import Result, Returned, made
from nki.jit import Kernel, Specialization
from nki.specialize import Call
from torch_neuronx.errors import TileKernelError
from torch_neuronx.tile_kernel import launch

NAMESPACE = "nki"
# Words of the schema language that cannot name an argument.
_TAKEN = {"self", "out", "Tensor", "int", "float", "bool", "str", "Scalar", "Device", "Layout"}

Tensors = list[torch.Tensor]

_operators: dict[str, Callable[..., Any]] = {}
_priceable: dict[str, tuple[Kernel, Specialization]] = {}
_of_specialization: WeakKeyDictionary[Specialization, _Operator] = WeakKeyDictionary()


class _Operator:
    """The operator of one specialisation; its arguments are the kernel's tensors in order."""

    def __init__(self, kernel: Kernel, specialization: Specialization, paths: list[str]) -> None:
        self.name = operator_name(kernel, specialization)
        known = _operators.get(self.name)
        self.call = known if known is not None else _register(self.name, specialization, paths)
        _operators[self.name] = self.call
        _priceable.setdefault(self.name, (kernel, specialization))


def _register(
    name: str, specialization: Specialization, paths: list[str]
) -> Callable[..., Tensors]:
    host_call = launch.host_call_of(specialization, paths)
    results = list(made(specialization.interface.results))

    def packed(outputs: Tensors) -> Any:
        if len(outputs) > 1:
            return tuple(outputs)
        return outputs[0] if outputs else None

    def run(*tensors: torch.Tensor) -> Any:
        return packed(launch.run_on_device(host_call, tensors, tensors[0].device, name))

    def fake(*tensors: torch.Tensor) -> Any:
        like = tensors[0]
        return packed(
            [like.new_empty(item.shape, dtype=launch.torch_dtype(item.dtype)) for item in results]
        )

    written = [path in specialization.interface.written for path in paths]
    names = [f"{_identifier(path)}" for path in paths]
    if len(set(names)) < len(names):
        names = [f"{name}_{position}" for position, name in enumerate(names)]
    arguments = ", ".join(
        f"Tensor(a{position}!) {name}" if mutated else f"Tensor {name}"
        for position, (name, mutated) in enumerate(zip(names, written, strict=True))
    )
    tensors_out = ", ".join(["Tensor"] * len(results))
    operator = torch.library.custom_op(
        name,
        run,
        mutates_args=[name for name, mutated in zip(names, written, strict=True) if mutated],
        schema=f"({arguments}) -> {tensors_out if len(results) == 1 else f'({tensors_out})'}",
    )
    operator.register_fake(fake)

    def call(*tensors: torch.Tensor) -> Tensors:
        outputs = operator(*tensors)
        if len(results) > 1:
            return list(outputs)
        return [outputs] if results else []

    return call


def _identifier(path: str) -> str:
    name = "".join(c if c.isalnum() else "_" for c in path)
    return f"{name}_" if keyword.iskeyword(name) or name in _TAKEN else name


def modelled_seconds(name: str) -> float | None:
    """Modelled time of one call of the operator `name`, None if no kernel is behind it."""
    if name not in _priceable:
        return None
    return seconds_of(*_priceable[name])


def operator_name(kernel: Kernel, specialization: Specialization) -> str:
    """For example nki::softmax_1f9c3e2ab04d."""
    return f"{NAMESPACE}::{_identifier(kernel.__name__)}_{specialization.digest[:12]}"


def call(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a kernel on torch tensors, or capture the call if they are fake.

    Raises:
        TileKernelError: tensors on several devices, or a call that cannot be captured.
    """
    bound = Call.bind(kernel.function, args, kwargs)
    tensors = _torch_tensors(kernel, bound)
    device = launch.common_device(kernel.__name__, tensors)
    specialization = None if kernel.in_steps else kernel.specialize(bound)
    if specialization is None or specialization.programs is None:
        return _in_steps(kernel, bound, tensors, device)
    operator = _of_specialization.get(specialization)
    if operator is None:
        operator = _Operator(kernel, specialization, list(tensors))
        _of_specialization[specialization] = operator
    results = iter(operator.call(*tensors.values()))
    return _arrange(specialization.interface.results, results, tensors)


def _torch_tensors(kernel: Kernel, bound: Call) -> dict[str, torch.Tensor]:
    for path, value in bound.arrays.items():
        if not isinstance(value, torch.Tensor):
            raise TileKernelError(
                f"Kernel {kernel.__name__} got torch tensors and, as {path}, a NumPy array of "
                f"shape {list(value.shape)}. Use torch.from_numpy(...) and move it to the device."
            )
    return bound.arrays


def _arrange(described: Any, results: Any, tensors: dict[str, torch.Tensor]) -> Any:
    if isinstance(described, Result):
        return next(results)
    if isinstance(described, Returned):
        return tensors[described.path]
    if isinstance(described, list | tuple):
        items = [_arrange(item, results, tensors) for item in described]
        return items if isinstance(described, list) else tuple(items)
    if isinstance(described, dict):
        return {name: _arrange(item, results, tensors) for name, item in described.items()}
    return described


def _in_steps(
    kernel: Kernel, bound: Call, tensors: dict[str, torch.Tensor], device: torch.device
) -> Any:
    """The kernel's Python decides as it runs, so there is no operator: run it here and now."""
    if device.type not in ("cpu", "neuron") or any(
        type(tensor) not in (torch.Tensor, torch.nn.Parameter) for tensor in tensors.values()
    ):
        raise TileKernelError(
            f"Kernel {kernel.__name__} runs as Python (NKI_STEP=1, or its Python depends on values "
            "of the device), so it cannot be part of a compiled graph or run on fake tensors. "
            "Call it outside torch.compile, or steer it by nl.fori_loop and nl.while_loop."
        )
    returned: list[Any] = []

    def host_call(aliases: Tensors) -> Tensors:
        by_path = dict(zip(tensors, aliases, strict=True))
        result = kernel.run(bound.with_arrays(by_path))
        returned.append(result)
        return [item for item in _flat(result) if isinstance(item, torch.Tensor)]

    name = f"{NAMESPACE}::{kernel.__name__}"
    results = iter(launch.run_on_device(host_call, list(tensors.values()), device, name))
    return _replaced(returned[0], results)


def _flat(result: Any) -> Any:
    if isinstance(result, list | tuple):
        for item in result:
            yield from _flat(item)
    elif isinstance(result, dict):
        for item in result.values():
            yield from _flat(item)
    else:
        yield result


def _replaced(result: Any, results: Any) -> Any:
    if isinstance(result, torch.Tensor):
        return next(results)
    if isinstance(result, list | tuple):
        items = [_replaced(item, results) for item in result]
        return items if isinstance(result, list) else tuple(items)
    if isinstance(result, dict):
        return {name: _replaced(item, results) for name, item in result.items()}
    return result

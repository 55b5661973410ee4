"""One call, made on the CPU and on the device, and what came of each: a value or an error."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._pytree import tree_leaves

from compare import assert_same
from ops.catalogue import SEED
from ops.exceptions import HOST_ARGUMENTS
from ops.under_test import DEVICE, Placement, Truth


@dataclasses.dataclass(frozen=True, kw_only=True)
class Arguments:
    """The arguments of one call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    on_host: tuple[int, ...] = ()
    """Positions of arguments that stay on the CPU."""

    @classmethod
    def of(cls, sample: SampleInput, op: OpInfo) -> Arguments:
        """The arguments of a sample input of the wheel."""
        args = (sample.input, *sample.args)
        return cls(args=args, kwargs=sample.kwargs, on_host=HOST_ARGUMENTS.get(op.name, ()))

    def placed(self, placement: Placement) -> Arguments:
        """These arguments, as copies elsewhere."""
        args = tuple(
            arg if position in self.on_host else placement(arg)
            for position, arg in enumerate(self.args)
        )
        return dataclasses.replace(self, args=args, kwargs=placement(self.kwargs))

    def tensors(self) -> list[Tensor]:
        """All tensors among the arguments, in order."""
        return [x for x in tree_leaves((self.args, self.kwargs)) if isinstance(x, Tensor)]


def cotangent(output: Tensor) -> Tensor:
    """A gradient of the output: other for each element, small, made on the CPU."""
    ramp = torch.arange(output.numel(), dtype=torch.float64).remainder(7).add(1).div(8)
    return ramp.reshape(output.shape).to(output.dtype)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a call."""

    value: Any = None
    error: Exception | None = None


def outcome_of(function: Callable[..., Any], arguments: Arguments) -> Outcome:
    """Call with a fixed seed; an error is an outcome, too, and so is one that comes late."""
    torch.manual_seed(SEED)
    try:
        value = function(*arguments.args, **arguments.kwargs)
        if DEVICE != "cpu":
            torch.accelerator.synchronize()
    except Exception as error:  # noqa: BLE001 - whatever the CPU raises, the device must raise
        return Outcome(error=error)
    return Outcome(value=value)


def without_device_names(message: str) -> str:
    """The first lines of an error, up to what names a device, a backend or a C++ place."""
    message = message.split("\nException raised from")[0]
    message = re.sub(
        r"\b(neuron|cpu|privateuseone|privateuse1)(:\d+)?\b", "DEVICE", message, flags=re.IGNORECASE
    )
    message = re.sub(r"\bSparse(CPU|neuron|PrivateUse1)", "SparseDEVICE", message)
    message = re.sub(r"torch\.(DEVICE\.)?(\w*Tensor)\b", r"torch.\2", message)
    return re.sub(r"0x[0-9a-f]+", "ADDRESS", message)


def assert_same_error(
    ours: Exception | None, theirs: Exception, *, pattern: str | None = None
) -> None:
    """Check that the device refuses what the CPU refuses, with the same class of error.

    With a `pattern` the message is the CPU's but for device names, or fits the pattern: an op
    that several things are wrong with may name any of them.
    """
    assert ours is not None, f"no error; the CPU says {type(theirs).__name__}: {theirs}"
    assert type(ours) is type(theirs), (
        f"{type(ours).__name__}: {ours}\nwhere the CPU says {type(theirs).__name__}: {theirs}"
    )
    if pattern is not None:
        same = without_device_names(str(ours)) == without_device_names(str(theirs))
        assert same or re.search(pattern, str(ours)), (
            f"other words: {ours}\nwhere the CPU says: {theirs}"
        )


def aliases(outputs: Any, arguments: Arguments) -> list[tuple[int, int, bool]]:
    """Which output tensor shares the storage of which argument: (output, argument, is a view)."""
    inputs = [t for t in arguments.tensors() if t.layout is torch.strided and not t.is_nested]
    return [
        (i, j, out._is_view())
        for i, out in enumerate(x for x in tree_leaves(outputs) if isinstance(x, Tensor))
        for j, given in enumerate(inputs)
        if out.layout is torch.strided
        and not out.is_nested
        and out.numel()
        and type(out) is type(given) is Tensor
        and out.untyped_storage()._cdata == given.untyped_storage()._cdata
    ]


def check_call(
    function: Callable[..., Any],
    given: Arguments,
    *,
    values: bool = True,
    truth: bool = True,
    slack_ulps: float = 0.0,
    shift: int = 0,
) -> None:
    """Call `function` on the CPU and on the device; results, mutations, aliases are the same.

    Args:
        function: the op.
        given: its arguments on the CPU; not changed.
        values: compare values; off for random and uninitialised results.
        truth: the float64 result may decide where bits differ.
        slack_ulps: further error allowed, in units of the largest value's last place.
        shift: storage offset added to each argument.
    """
    theirs_given = given.placed(Placement("cpu", shift=shift))
    ours_given = given.placed(Placement(shift=shift))
    theirs = outcome_of(function, theirs_given)
    ours = outcome_of(function, ours_given)
    if theirs.error is not None:
        assert_same_error(ours.error, theirs.error)
        return
    if ours.error is not None:
        raise AssertionError(
            f"only the device gives an error, {type(ours.error).__name__}: {ours.error}"
        ) from ours.error

    exact_given: list[Arguments] = []

    def exact() -> Any:
        exact_given.append(given.placed(Truth()))
        return outcome_of(function, exact_given[0]).value

    assert_same(
        ours.value,
        theirs.value,
        truth=exact if truth else None,
        values=values,
        slack_ulps=slack_ulps,
    )
    assert aliases(ours.value, ours_given) == aliases(theirs.value, theirs_given), (
        "outputs share storage with other arguments than on the CPU: (output, argument, is a view)"
    )
    # Also what the CPU leaves alone: the device must, too.
    pairs = zip(ours_given.tensors(), theirs_given.tensors(), strict=True)
    for index, (mine, reference) in enumerate(pairs):

        def exact_argument(index: int = index) -> Tensor:
            if not exact_given:
                exact()
            return exact_given[0].tensors()[index]

        assert_same(
            mine,
            reference,
            truth=exact_argument if truth else None,
            values=values,
            slack_ulps=slack_ulps,
            where=f"argument {index} after the call",
        )

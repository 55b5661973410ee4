"""Is a result of the device the CPU's result: the same bits, or no farther from the truth.

Two results are the same if type, shape, dtype, layout, strides, lazy conjugation and bits agree.
Where a kernel of ours sums in another order than ATen's, bits may differ; then a float64 result
(`truth`) decides: the device may not be farther from it than the CPU is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

_INTEGER_OF_SIZE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
# Two equally good orders of summation differ that much in the largest of their errors.
_LUCK = 2.0
# Error of one element that is never too much, in units of its last place.
_ELEMENT_ULPS = 2.0


def assert_same(
    actual: Any,
    expected: Any,
    *,
    truth: Callable[[], Any] | None = None,
    strides: bool = True,
    values: bool = True,
    slack_ulps: float = 0.0,
    where: str = "result",
) -> None:
    """Check nested containers of tensors and plain values leaf by leaf.

    Args:
        actual: what the device gave.
        expected: what the CPU gave.
        truth: makes the float64 result of the same structure, only asked if bits differ.
        strides: compare strides of dimensions that have more than one element.
        values: compare values (not for random or uninitialised results).
        slack_ulps: error allowed beyond the CPU's own, in units of the largest value's last place.
        where: the name of this result in messages.
    """
    memo: list[Any] = []

    def truth_at(path: tuple[Any, ...]) -> Tensor | None:
        if truth is None:
            return None
        if not memo:
            memo.append(truth())
        found = memo[0]
        for step in path:
            found = _child(found, step)
            if found is None:
                return None
        return found if isinstance(found, Tensor) else None

    rules = _Rules(truth_at=truth_at, strides=strides, values=values, slack_ulps=slack_ulps)
    _check(actual, expected, rules, (), where)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Rules:
    truth_at: Callable[[tuple[Any, ...]], Tensor | None]
    strides: bool
    values: bool
    slack_ulps: float


def _child(container: Any, step: Any) -> Any:
    try:
        return container[step]
    except (TypeError, KeyError, IndexError):
        return None


def _check(actual: Any, expected: Any, rules: _Rules, path: tuple[Any, ...], where: str) -> None:
    if isinstance(expected, Tensor):
        assert isinstance(actual, Tensor), f"{where}: {type(actual)} where the CPU gives a tensor"
        _check_tensor(actual, expected, rules, path, where)
    elif isinstance(expected, Mapping):
        assert list(actual) == list(expected), f"{where}: keys {list(actual)}, {list(expected)}"
        for key in expected:
            _check(actual[key], expected[key], rules, (*path, key), f"{where}[{key!r}]")
    elif isinstance(expected, list | tuple):
        assert type(actual) is type(expected), f"{where}: {type(actual)}, {type(expected)}"
        assert len(actual) == len(expected), f"{where}: {len(actual)} items, {len(expected)}"
        for index, item in enumerate(expected):
            _check(actual[index], item, rules, (*path, index), f"{where}[{index}]")
    elif isinstance(expected, torch.device):
        assert isinstance(actual, torch.device), f"{where}: {actual!r} is not a device"
    elif rules.values:
        assert type(actual) is type(expected), (
            f"{where}: {actual!r} where the CPU gives a {expected!r}"
        )
        assert actual == expected or (actual != actual and expected != expected), (
            f"{where}: {actual!r}, CPU {expected!r}"
        )


def _check_tensor(
    actual: Tensor, expected: Tensor, rules: _Rules, path: tuple[Any, ...], where: str
) -> None:
    for name in ("dtype", "layout", "is_quantized", "is_nested", "requires_grad"):
        ours, theirs = getattr(actual, name), getattr(expected, name)
        assert ours == theirs, f"{where}: {name} {ours}, CPU {theirs}"
    if expected.is_nested:
        _check(_nested_parts(actual), _nested_parts(expected), rules, path, where)
        return
    assert actual.shape == expected.shape, f"{where}: {actual.shape}, CPU {expected.shape}"
    if expected.layout is not torch.strided:
        ours, theirs = _sparse_parts(actual), _sparse_parts(expected)
        for name in theirs:
            part = dataclasses.replace(
                rules,
                truth_at=lambda path, n=name: _part_of(rules.truth_at(path), n),
                strides=False,
            )
            _check(ours[name], theirs[name], part, path, f"{where}.{name}")
        return
    if expected.is_quantized:
        _check(_quantized_parts(actual), _quantized_parts(expected), rules, (), where)
        return
    for name in ("is_conj", "is_neg"):
        ours, theirs = getattr(actual, name)(), getattr(expected, name)()
        assert ours == theirs, f"{where}: {name} {ours}, CPU {theirs}"
    if rules.strides and expected.numel() > 0:
        ours, theirs = _strides(actual), _strides(expected)
        assert ours == theirs, f"{where}: strides {ours}, CPU {theirs} (shape {expected.shape})"
    if rules.values:
        _check_values(actual, expected, lambda: rules.truth_at(path), rules.slack_ulps, where)


def _strides(tensor: Tensor) -> list[int]:
    """Strides that have a meaning: a dimension of one element may have any."""
    return [s for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1]


def _nested_parts(tensor: Tensor) -> list[Tensor]:
    return list(tensor.unbind())


def _quantized_parts(tensor: Tensor) -> dict[str, Any]:
    parts: dict[str, Any] = {"scheme": str(tensor.qscheme()), "integers": tensor.int_repr()}
    if tensor.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        return parts | {"scale": tensor.q_scale(), "zero_point": tensor.q_zero_point()}
    return parts | {
        "scales": tensor.q_per_channel_scales(),
        "zero_points": tensor.q_per_channel_zero_points(),
        "axis": tensor.q_per_channel_axis(),
    }


def _sparse_parts(tensor: Tensor) -> dict[str, Any]:
    tensor = tensor.detach()
    if tensor.layout is torch.sparse_coo:
        return {
            "is_coalesced": tensor.is_coalesced(),
            "dims": (tensor.sparse_dim(), tensor.dense_dim()),
            "indices": tensor._indices(),
            "values": tensor._values(),
        }
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        compressed, plain = tensor.crow_indices(), tensor.col_indices()
    elif tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        compressed, plain = tensor.ccol_indices(), tensor.row_indices()
    else:
        return {"dense": tensor.to_dense()}
    return {"compressed": compressed, "plain": plain, "values": tensor.values()}


def _part_of(tensor: Tensor | None, name: str) -> Tensor | None:
    if tensor is None or tensor.layout is torch.strided:
        return None
    return _sparse_parts(tensor).get(name)


def host(tensor: Tensor) -> Tensor:
    """The values on the CPU, contiguous, without lazy bits and history."""
    return tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()


def same_bits(actual: Tensor, expected: Tensor) -> bool:
    """Whether two contiguous CPU tensors hold the same bits, all NaNs counting as one."""
    if actual.dtype.is_complex:
        actual, expected = torch.view_as_real(actual), torch.view_as_real(expected)
    if actual.dtype is torch.bool or not actual.dtype.is_floating_point:
        return torch.equal(actual, expected)
    as_integers = _INTEGER_OF_SIZE.get(actual.element_size())
    if as_integers is None:
        return torch.equal(actual, expected)
    if torch.equal(actual.view(as_integers), expected.view(as_integers)):
        return True
    nan = torch.isnan(expected.double())
    if not torch.equal(torch.isnan(actual.double()), nan):
        return False
    zero = torch.zeros((), dtype=as_integers)
    return torch.equal(
        actual.view(as_integers).where(~nan, zero), expected.view(as_integers).where(~nan, zero)
    )


def _check_values(
    actual: Tensor,
    expected: Tensor,
    truth: Callable[[], Tensor | None],
    slack_ulps: float,
    where: str,
) -> None:
    ours, theirs = host(actual), host(expected)
    if same_bits(ours, theirs):
        return
    exact = truth() if expected.dtype.is_floating_point or expected.dtype.is_complex else None
    if exact is None and slack_ulps:
        exact = theirs  # the op takes no float64; the CPU's result stands for the truth
    assert exact is not None, (
        f"{where}: other bits than the CPU; {_first_differences(ours, theirs)}"
    )
    problem = farther_than(ours, theirs, host(exact), slack_ulps=slack_ulps)
    assert problem is None, f"{where}: {problem}; {_first_differences(ours, theirs)}"


def farther_than(
    actual: Tensor, expected: Tensor, truth: Tensor, *, slack_ulps: float = 0.0
) -> str | None:
    """Why `actual` is farther from the float64 `truth` than `expected` is; None if it is not."""
    if truth.shape != actual.shape:
        return f"the float64 result has another shape, {tuple(truth.shape)}"
    eps = torch.finfo(expected.dtype).eps
    tiny = torch.finfo(expected.dtype).smallest_normal
    if actual.dtype.is_complex:
        # An error of a complex product is relative to the number, not to each part.
        magnitude = truth.abs().unsqueeze(-1)
        actual, expected, truth = map(torch.view_as_real, (actual, expected, truth))
    else:
        magnitude = truth.abs()
    ours, theirs, exact = actual.double(), expected.double(), truth.double()
    for test in (torch.isnan, torch.isposinf, torch.isneginf):
        if not torch.equal(test(ours), test(theirs)):
            return f"{test.__name__} at other places"
    finite = torch.isfinite(theirs) & torch.isfinite(exact)
    zero = torch.zeros((), dtype=torch.float64)
    our_error = (ours - exact).abs().where(finite, zero)
    cpu_error = (theirs - exact).abs().where(finite, zero).max() if finite.any() else zero
    allowed = (
        _LUCK * cpu_error
        + _ELEMENT_ULPS * (eps * magnitude + tiny * eps)
        + slack_ulps * eps * _largest(magnitude)
    )
    over = our_error > allowed.where(finite, torch.inf)
    if not over.any():
        return None
    worst = (our_error - allowed).where(over, zero).argmax()
    return (
        f"{int(over.sum())} of {over.numel()} elements are farther from the float64 result than "
        f"the CPU: error {float(our_error.flatten()[worst]):.3g} at "
        f"{float(exact.flatten()[worst]):.6g}, largest error of the CPU {float(cpu_error):.3g}"
    )


def _largest(magnitude: Tensor) -> float:
    finite = magnitude[torch.isfinite(magnitude)]
    return max(1.0, float(finite.max())) if finite.numel() else 1.0


def _first_differences(actual: Tensor, expected: Tensor, count: int = 3) -> str:
    if actual.dtype.is_complex:
        actual, expected = torch.view_as_real(actual), torch.view_as_real(expected)
    different = (actual != expected) & ~((actual != actual) & (expected != expected))
    places = different.nonzero()[:count].tolist()
    shown = ", ".join(
        f"{p}: {actual[tuple(p)].item()} != {expected[tuple(p)].item()}" for p in places
    )
    return f"{int(different.sum())} of {different.numel()} differ ({shown or 'signs of zero'})"

"""Arithmetic on shapes and strides. No tensors here."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from nki.errors import ViewError


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Dense strides of a shape."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """True if the strides are those of a dense row-major array; size 1 does not count."""
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def merge(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int] | None:
    """Size and stride of all dimensions as one, None if they are not evenly spaced."""
    kept = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    if not kept:
        return 1, strides[-1] if strides else 1
    for (_, outer), (size, inner) in itertools.pairwise(kept):
        if outer != size * inner:
            return None
    return math.prod(size for size, _ in kept), kept[-1][1]


def fill_in(shape: tuple[int, ...], total: int, *, what: str) -> tuple[int, ...]:
    """Replace one -1 so that the product is `total`."""
    if shape.count(-1) == 1:
        known = math.prod(size for size in shape if size != -1)
        if known and total % known == 0:
            return tuple(total // known if size == -1 else size for size in shape)
    if math.prod(shape) != total or any(size < 0 for size in shape):
        raise ViewError(f"{what} to {shape}: the sizes must multiply to {total}.")
    return shape


def restride(
    shape: Sequence[int], strides: Sequence[int], target: Sequence[int], *, keep_first: bool
) -> tuple[int, ...] | None:
    """Strides of `target` over the same elements, None if that needs a copy."""
    if keep_first:
        rest = restride(shape[1:], strides[1:], target[1:], keep_first=False)
        return None if rest is None else (strides[0], *rest)
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    result: list[int] = []
    position = 0
    index = 0
    while index < len(target):
        if position == len(old):
            result.append(1)  # only ones are left
            index += 1
            continue
        # The shortest groups of old and new dimensions with the same number of elements.
        end_old, end_new = position + 1, index + 1
        count_old, count_new = old[position][0], target[index]
        while count_old != count_new:
            if count_old < count_new:
                if end_old == len(old):
                    return None
                count_old *= old[end_old][0]
                end_old += 1
            else:
                if end_new == len(target):
                    return None
                count_new *= target[end_new]
                end_new += 1
        group = old[position:end_old]
        merged = merge([n for n, _ in group], [s for _, s in group])
        if merged is None:
            return None
        result.extend(step * merged[1] for step in row_major(target[index:end_new]))
        position, index = end_old, end_new
    return tuple(result)


def span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Distance in elements from the first to the last element of a view (strides >= 0)."""
    reach = 0
    for size, stride in zip(shape, strides, strict=True):
        reach += (size - 1) * stride
    return reach

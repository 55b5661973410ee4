"""`nki.typing`: annotations of expected shapes, such as `nt.tensor[128, 512]`."""

from __future__ import annotations

from typing import Any


class tensor:  # noqa: N801
    """A tensor argument; `tensor[shape]` says which shape is expected."""

    def __class_getitem__(cls, shape: Any) -> Any:
        sizes = shape if isinstance(shape, tuple) else (shape,)
        return type(f"tensor{sizes}", (cls,), {"shape": sizes})


class mutable_tensor(tensor):  # noqa: N801
    """A tensor argument that the kernel updates in place."""

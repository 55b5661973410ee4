"""nki_op and wrap_nki: the public ways to put kernels into PyTorch programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

import torch
from torch._library.custom_ops import CustomOpDef

from torch_neuronx.errors import TileKernelError

if TYPE_CHECKING:
    from nki.jit import Kernel

Launcher = Callable[..., Any]


@overload
def nki_op(
    name: str,
    fn: None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    schema: str | None = None,
    tags: Sequence[torch.Tag] | None = None,
) -> Callable[[Launcher], CustomOpDef]: ...


@overload
def nki_op(
    name: str,
    fn: Launcher,
    /,
    *,
    mutates_args: str | Iterable[str],
    schema: str | None = None,
    tags: Sequence[torch.Tag] | None = None,
) -> CustomOpDef: ...


def nki_op(
    name: str,
    fn: Launcher | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    schema: str | None = None,
    tags: Sequence[torch.Tag] | None = None,
) -> Any:
    """Make a function that launches kernels an operator, `@nki_op("my::op", mutates_args=())`.

    The function is annotated like one for torch.library.custom_op and returns new tensors. Results
    on fake tensors come from the kernels' specialisations, so `register_fake` is not needed;
    `register_autograd`, `register_autocast` and `register_vmap` are those of torch.library.

    Args:
        name: "namespace::name".
        fn: the launcher, if this is not used as a decorator.
        mutates_args: names of the arguments that it writes; () or {} for none.
        schema: the operator's schema, if annotations cannot say it.
        tags: of torch.library.

    Raises:
        TileKernelError: the name has no namespace, or `fn` is a kernel and not a launcher.
    """
    if fn is None:
        return lambda launcher: nki_op(
            name, launcher, mutates_args=mutates_args, schema=schema, tags=tags
        )
    if "::" not in name:
        raise TileKernelError(f'nki_op("{name}"): write "namespace::name", e.g. "mine::{name}".')
    if hasattr(fn, "func") and hasattr(fn, "grid"):
        raise TileKernelError(
            f'nki_op("{name}") got the kernel {fn.__name__} itself. Decorate a function with '
            "annotated torch.Tensor arguments that calls the kernel: "
            f"def launch(x: torch.Tensor) -> torch.Tensor: return {fn.__name__}(x)."
        )
    made = torch.library.custom_op(
        name,
        fn,
        mutates_args=mutates_args if isinstance(mutates_args, str) else tuple(mutates_args),
        schema=schema,
        tags=tags,
    )
    made.register_fake(fn)
    return made


def wrap_nki(kernel: Kernel | Launcher) -> Kernel:
    """The kernel as something to call with tensors, `wrap_nki(kernel)(x)` or `[grid](x)`.

    Kernels can be called directly too; a plain function becomes a kernel.
    """
    import nki

    if not callable(kernel):
        raise TileKernelError(
            f"wrap_nki takes a kernel or a function, not {kernel!r} ({type(kernel).__name__})."
        )
    made = nki.jit(kernel)
    assert isinstance(made, nki.Kernel)
    return made

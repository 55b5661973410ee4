"""Kernels in captured graphs: Dynamo puts the call into the graph as it is, without looking in.

AOTAutograd then runs the call on fake tensors, which leaves one operator in the graph.
"""

from __future__ import annotations

from typing import Any

from torch.utils import _pytree as pytree

_allowed = False


def allow_in_graph() -> None:
    """Make calls of kernels opaque to Dynamo; once a process."""
    global _allowed
    if _allowed:
        return
    _allowed = True
    from torch._dynamo import nonstrict_trace

    from nki.jit import Kernel

    pytree.register_constant(Kernel)
    kernel_type: Any = Kernel
    kernel_type.__call__ = nonstrict_trace(Kernel.__call__)

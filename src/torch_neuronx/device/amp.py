"""Mixed precision under the names of torch.cuda.amp; the device is filled in."""

from __future__ import annotations

import functools
from typing import Any

import torch


class autocast(torch.amp.autocast):
    """`torch.autocast("neuron")`."""

    def __init__(
        self,
        enabled: bool = True,
        dtype: torch.dtype | None = None,
        cache_enabled: bool | None = None,
    ) -> None:
        super().__init__("neuron", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """`torch.amp.GradScaler("neuron")`."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("neuron", **kwargs)


custom_fwd = functools.partial(torch.amp.custom_fwd, device_type="neuron")
custom_bwd = functools.partial(torch.amp.custom_bwd, device_type="neuron")

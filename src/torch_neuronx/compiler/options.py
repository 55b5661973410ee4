"""The modes and options of torch.compile(backend="neuron")."""

from __future__ import annotations

import difflib
from typing import Any

from torch_neuronx.errors import OptionError

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")

_ALWAYS: dict[str, Any] = {
    # Random ops stay ATen calls, so that they can draw from the device's Philox sequence.
    "fallback_random": True,
}


def inductor_patches(*, mode: str | None, options: dict[str, Any] | None) -> dict[str, Any]:
    """Inductor's configuration for a mode and options.

    Args:
        mode: one of MODES; None is "default".
        options: keys of Inductor's configuration.

    Raises:
        OptionError: for a name that does not exist.
    """
    from torch._inductor import list_mode_options, list_options

    chosen = mode or "default"
    if chosen not in MODES:
        raise OptionError(
            f"torch.compile mode {chosen!r} does not exist. Modes: {', '.join(MODES)}."
            f"{_near(chosen, MODES)}"
        )
    patches = {
        key: value
        for key, value in list_mode_options(chosen).items()
        # Graph capture of CUDA kernels has no meaning here.
        if not key.startswith("triton.")
    }
    known = list_options()
    for key, value in (options or {}).items():
        name = key.replace("-", "_")
        if name not in known:
            raise OptionError(
                f"torch.compile option {key!r} does not exist for backend 'neuron'."
                f"{_near(name, known)} torch._inductor.list_options() lists all."
            )
        patches[name] = value
    return patches | _ALWAYS


def _near(name: str, known: Any) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""

"""The modes and options of torch.compile(backend="neuron")."""

from __future__ import annotations

from typing import Any, get_origin

from torch_neuronx.errors import OptionError, did_you_mean

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")

ALWAYS: dict[str, Any] = {
    # Random operators stay whole: `device_calls` lets them draw from the device's sequence.
    "fallback_random": True,
}


def inductor_patches(*, mode: str | None, options: dict[str, Any] | None) -> dict[str, Any]:
    """Inductor's configuration for a mode and options.

    Args:
        mode: one of MODES; None is "default".
        options: keys of Inductor's configuration; "-" stands for "_".

    Raises:
        OptionError: for a name that does not exist, or a value of another type.
    """
    from torch._inductor import config, list_mode_options

    chosen = mode or "default"
    if chosen not in MODES:
        raise OptionError(
            f"torch.compile mode {chosen!r} does not exist.{did_you_mean(chosen, MODES)} "
            f"Modes: {', '.join(MODES)}."
        )
    patches: dict[str, Any] = dict(list_mode_options(chosen))
    known: dict[str, Any] = config.get_config_copy()
    for key, value in (options or {}).items():
        name = key.replace("-", "_")
        if name not in known:
            raise OptionError(
                f"torch.compile option {key!r} does not exist for backend 'neuron'."
                f"{did_you_mean(name, known)} torch._inductor.list_options() lists all."
            )
        expected = config.get_type(name)  # type: ignore[attr-defined]
        if get_origin(expected) is None and not isinstance(value, expected):
            raise OptionError(
                f"torch.compile option {key!r} is {value!r}, a {type(value).__name__}. Give it a "
                f"{expected.__name__}; the default is {known[name]!r}."
            )
        if name in ALWAYS and value != ALWAYS[name]:
            raise OptionError(
                f"torch.compile option {key!r} is always {ALWAYS[name]!r} for backend 'neuron', so "
                "that random numbers are those of eager. Leave it out."
            )
        patches[name] = value
    return patches


def without_device_graphs(patches: dict[str, Any]) -> dict[str, Any]:
    """Leave out what captures kernels of a GPU for replay; a host call has none."""
    return {key: value for key, value in patches.items() if not key.startswith("triton.")}

"""Whose time is modelled, fixed at import; cost rules load when the first price is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_neuronx import _C

if TYPE_CHECKING:
    from neuron_chip import Instance

_chosen: tuple[Instance, int] | None = None


def configure(instance: Instance, lnc: int) -> None:
    """Model one logical core of `lnc` physical ones; called by the registration."""
    global _chosen
    _chosen = instance, lnc
    _C._set_price_hook(_price)


def chosen() -> tuple[Instance, int]:
    """The instance, and how many physical cores a logical one fuses."""
    assert _chosen is not None, "the registration configures the clock"
    return _chosen


def _price(signature: int) -> tuple[int, int, bool]:
    from torch_neuronx.clock.pricing import price

    return price(signature)

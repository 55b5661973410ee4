"""Published measurements against the model: `python -m neuron_chip.accuracy` writes the page."""

from __future__ import annotations

"""The modelled clock: what runs here, as time, memory and money on the chip.

    op calls --observer (C++)--> signatures --ops.costs--> Work --neuron_chip.cost--> Time

`pricing` knows the price of a signature, `measurement` is `torch.neuron.measure()`, `memory_peak`
finds what was alive at the peak of HBM, `modules` tells the observer which module is running.
"""

from __future__ import annotations

from torch_neuronx.clock.measurement import Measurement, measure, modelled_time
from torch_neuronx.clock.memory_peak import Live, Peak
from torch_neuronx.clock.pricing import configure, machine

__all__ = ["Live", "Measurement", "Peak", "configure", "machine", "measure", "modelled_time"]

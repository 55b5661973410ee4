"""The modelled clock: what runs here, as time, memory and money on the chip.

    op calls --observer (C++)--> signatures --ops.costs--> Work --neuron_chip.cost--> Time

`configured` says whose time, `pricing` knows the price of a signature, `measurement` is
`torch.neuron.measure()`, `memory_peak` finds what was alive at the peak of HBM, `modules` tells the
observer which module is running. Importing this package loads none of them.
"""

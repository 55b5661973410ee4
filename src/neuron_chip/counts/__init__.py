"""Work of common operations from their shapes. Counting only: no time, no prices."""

from __future__ import annotations

from neuron_chip.counts.attention import attention, attention_unfused
from neuron_chip.counts.convolution import convolution
from neuron_chip.counts.elementwise import default_rule, elementwise, function, passes
from neuron_chip.counts.matmul import matmul
from neuron_chip.counts.movement import (
    copy,
    dma_transpose,
    gather_elements,
    gather_rows,
    host_copy,
    launch,
    scatter_add_rows,
    transpose,
)
from neuron_chip.counts.rows import row_operation, top_k
from neuron_chip.counts.transformer import (
    Phases,
    Transformer,
    decode_step,
    forward,
    layer,
    prefill,
    repeat,
    training_step,
)

__all__ = [
    "Phases",
    "Transformer",
    "attention",
    "attention_unfused",
    "convolution",
    "copy",
    "decode_step",
    "default_rule",
    "dma_transpose",
    "elementwise",
    "forward",
    "function",
    "gather_elements",
    "gather_rows",
    "host_copy",
    "launch",
    "layer",
    "matmul",
    "passes",
    "prefill",
    "repeat",
    "row_operation",
    "scatter_add_rows",
    "top_k",
    "training_step",
    "transpose",
]

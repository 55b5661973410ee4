"""Scaled dot-product attention, forward and backward."""

from __future__ import annotations

from neuron_chip import Work, counts
from torch_neuronx.ops.costs.call import Call, Machine, Tensor
from torch_neuronx.ops.costs.registry import rule

# The backward pass recomputes the scores and makes four products where the forward makes two.
_BACKWARD_PRODUCTS = 2.5


def _forward(query: Tensor, key: Tensor, value: Tensor, causal: bool, machine: Machine) -> Work:
    batch, heads, queries, width = query.sizes
    return counts.attention(
        chip=machine.chip,
        batch=batch,
        q_heads=heads,
        kv_heads=key.sizes[1],
        q_length=queries,
        kv_length=key.sizes[2],
        head_dim=max(width, value.sizes[3]),
        causal=causal,
        dtype=query.row.name,
    )


def _mask_bytes(call: Call, index: int) -> Work:
    mask = call.argument(index)
    return Work(hbm_read_bytes=mask.num_bytes) if isinstance(mask, Tensor) else Work()


@rule("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention")
def _attention(call: Call, machine: Machine) -> Work:
    query, key, value = (call.tensor(index) for index in range(3))
    return _forward(query, key, value, bool(call.argument(4)), machine) + _mask_bytes(call, 5)


@rule("_scaled_dot_product_flash_attention_for_cpu_backward")
def _backward(call: Call, machine: Machine) -> Work:
    query, key, value = (call.tensor(index) for index in range(1, 4))
    work = _forward(query, key, value, bool(call.argument(7)), machine)
    return _BACKWARD_PRODUCTS * work + _mask_bytes(call, 8)

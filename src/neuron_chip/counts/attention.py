"""Work of attention: blockwise softmax for many queries, streaming of the cache for few."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from neuron_chip.counts.elementwise import elementwise
from neuron_chip.counts.matmul import matmul
from neuron_chip.counts.rows import row_operation
from neuron_chip.dtypes import dtype as dtype_row
from neuron_chip.work import Activity, Lane, Work

if TYPE_CHECKING:
    from neuron_chip.parts import Chip

# Keys between two rescales of the running output; public flash-attention kernels for the chip
# take sections of 2,048 keys.
SECTION_KEYS = 2048


def attention(
    *,
    chip: Chip,
    batch: int = 1,
    q_heads: int,
    kv_heads: int,
    q_length: int,
    kv_length: int,
    head_dim: int,
    causal: bool = True,
    dtype: str = "bfloat16",
    through_hbm: bool = True,
) -> Work:
    """Scaled dot-product attention without materialised scores.

    Per block of 128 queries and 512 keys: scores (tensor), row maximum from PSUM (vector), exp with
    row sum (scalar), transpose of the probabilities (tensor) and their copy out of PSUM (vector),
    product with the values (tensor); per section, rescale of the running output (vector).

    Args:
        through_hbm: False when queries and outputs stay on the chip inside a larger graph; the keys
            and values are always read.
    """
    element = dtype_row(dtype)
    matmul_class = element.matmul_class or "fp32"
    tile = chip.tensor.columns
    # A block of scores fills one PSUM bank; short rows of keys fill part of it.
    bank = chip.psum.bank_bytes_per_partition or chip.psum.bytes_per_partition
    width = min(bank // 4, tile * math.ceil(kv_length / tile))
    parts = width // tile
    groups, rows = _query_rows(batch, q_heads, kv_heads, q_length, tile=tile)
    visible = _visible_share(q_length, kv_length, width) if causal and q_length > 1 else 1.0
    strips = groups * math.ceil(rows / tile) * visible
    blocks = strips * math.ceil(kv_length / width)
    # Keys lie with positions on partitions; the product wants features there. One transpose per
    # block of keys serves all query tiles.
    depth = math.ceil(head_dim / chip.tensor.rows)
    key_blocks = float(batch * kv_heads * math.ceil(kv_length / width) * depth)
    products = Activity(
        blocks * (depth + 2 * parts) + key_blocks * parts,
        blocks * (depth * width + parts * min(rows, tile) + parts * head_dim) + key_blocks * width,
    )
    rescale = strips * math.ceil(kv_length / SECTION_KEYS) * 2.0 * head_dim
    maxima = Activity(blocks * 4, blocks * width + rescale, blocks)
    # 16-bit copies out of PSUM run in the 2x mode.
    copies = Activity(blocks + key_blocks, (blocks + key_blocks) * width)
    rate = "2x" if element.is_16bit_float else "1x"
    vector = {Lane("vector", "1x"): maxima}
    vector[Lane("vector", rate)] = vector.get(Lane("vector", rate), Activity(0, 0)) + copies
    scores = batch * q_heads * q_length * kv_length * visible
    q_bytes = batch * q_heads * q_length * head_dim * element.bytes if through_hbm else 0.0
    return Work(
        lanes={
            Lane("tensor", matmul_class): products,
            Lane("scalar", "1x"): Activity(blocks, blocks * width, blocks),
            **vector,
        },
        flops={matmul_class: 4.0 * scores * head_dim},
        hbm_read_bytes=q_bytes + 2.0 * batch * kv_heads * kv_length * head_dim * element.bytes,
        hbm_write_bytes=q_bytes,
        tensor_bursts=1.0,
    )


def _query_rows(
    batch: int, q_heads: int, kv_heads: int, q_length: int, *, tile: int
) -> tuple[int, int]:
    """Independent groups and the query rows of each.

    Heads that share keys fill a tile together when there are few queries.
    """
    shared = max(1, q_heads // kv_heads)
    if q_length * shared <= tile:
        return batch * kv_heads, q_length * shared
    return batch * q_heads, q_length


def _visible_share(q_length: int, kv_length: int, width: int) -> float:
    """Share of the blocks that a causal mask leaves; those on the diagonal are whole blocks."""
    masked = (q_length - 1) / 2 / kv_length
    return min(1.0, 1.0 - masked + width / kv_length / 2)


def attention_unfused(
    *,
    chip: Chip,
    batch: int = 1,
    q_heads: int,
    kv_heads: int,
    q_length: int,
    kv_length: int,
    head_dim: int,
    dtype: str = "bfloat16",
) -> tuple[Work, ...]:
    """Attention as five operators with the scores in HBM: the path of heads wider than a tile.

    Products, scale, mask and softmax each wait for the one before.
    """
    del kv_heads  # shared keys are read again for each head
    heads = batch * q_heads
    scores = heads * q_length * kv_length
    pair = (dtype, dtype)
    return (
        matmul(q_length, head_dim, kv_length, chip=chip, dtype=dtype, batch=heads),
        elementwise("mul_scalar", scores, chip=chip, inputs=(dtype,), output=dtype),
        elementwise("add", scores, chip=chip, inputs=pair, output=dtype),
        row_operation("softmax", heads * q_length, kv_length, chip=chip, dtype=dtype),
        matmul(q_length, kv_length, head_dim, chip=chip, dtype=dtype, batch=heads),
    )

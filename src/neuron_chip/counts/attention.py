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
    from neuron_chip.chips import Chip

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
    width = chip.psum.bank_bytes_per_partition // 4 if chip.psum.bank_bytes_per_partition else 512
    width = min(width, tile * math.ceil(kv_length / tile))
    # Query heads that share keys fill a tile together when there are few queries.
    shared = max(1, q_heads // kv_heads)
    groups = batch * kv_heads if q_length * shared <= tile else batch * q_heads
    rows = q_length * (shared if groups == batch * kv_heads else 1)
    q_tiles = math.ceil(rows / tile)
    blocks = float(groups * q_tiles * math.ceil(kv_length / width))
    visible = 1.0
    if causal and q_length > 1:
        # Whole blocks on the diagonal are computed and then masked.
        masked = (q_length - 1) / 2 / kv_length
        visible = min(1.0, 1.0 - masked + width / kv_length / 2)
    blocks *= visible
    depth = math.ceil(head_dim / chip.tensor.rows)
    out_columns = min(head_dim, width)
    parts = width // tile
    per_block_columns = depth * width + parts * min(rows, tile) + parts * out_columns
    per_block_matmuls = depth + 2 * parts
    # Keys with fewer rows than the array leave part of it idle; the columns are the same.
    rescale = 2 * out_columns * width / min(SECTION_KEYS, max(width, kv_length))
    vector_full = width + rescale
    copies = Activity(blocks, blocks * width, 0.0)
    half = element.is_16bit_float and chip.vector.max_fast_elements_per_lane_cycle > 1
    # Keys lie with positions on partitions; the product wants features there. One transpose per
    # block of keys serves all query tiles.
    key_blocks = float(batch * kv_heads * math.ceil(kv_length / width)) * depth
    flips = Activity(key_blocks * parts, key_blocks * width)
    copies += Activity(key_blocks, key_blocks * width, 0.0)
    vector = {Lane("vector", "1x"): Activity(blocks * 4, blocks * vector_full, blocks)}
    if half:
        vector[Lane("vector", "2x")] = copies
    else:
        vector[Lane("vector", "1x")] = vector[Lane("vector", "1x")] + copies
    score_elements = batch * q_heads * q_length * kv_length * visible
    q_bytes = batch * q_heads * q_length * head_dim * element.bytes
    kv_bytes = 2.0 * batch * kv_heads * kv_length * head_dim * element.bytes
    return Work(
        lanes={
            Lane("tensor", matmul_class): flips
            + Activity(blocks * per_block_matmuls, blocks * per_block_columns),
            **vector,
            Lane("scalar", "1x"): Activity(blocks, blocks * width, blocks),
        },
        flops={matmul_class: 4.0 * score_elements * head_dim},
        hbm_read_bytes=(q_bytes if through_hbm else 0.0) + kv_bytes,
        hbm_write_bytes=q_bytes if through_hbm else 0.0,
        tensor_bursts=1.0,
    )


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

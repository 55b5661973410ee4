"""Published tile kernels, device time on one physical core.

Tutorial kernels are hand-scheduled, and their profiles show one engine busy all the time, so
nothing is taken to show beside it. Benchmark kernels get the general overlap. Where a profile
prints the HBM bytes, these are the counted bytes; instructions are counted from the algorithm.
"""

from __future__ import annotations

from neuron_chip.accuracy.measurement import Measurement, milliseconds
from neuron_chip.chips import TRN1, TRN2
from neuron_chip.counts import attention, elementwise, matmul, passes
from neuron_chip.parts import Chip
from neuron_chip.work import Activity, Lane, Work

MEGA = 1e6
F32 = "float32"


def _row(
    name: str,
    ms: float,
    work: Work,
    *,
    source: str,
    chip: Chip = TRN1,
    hand_scheduled: bool = False,
    guide: bool = False,
) -> Measurement:
    return Measurement(
        name=f"{name}, {chip.name}",
        group="NKI kernel",
        seconds=milliseconds(ms),
        source=source,
        work=(work,),
        chip=chip,
        lnc=1,
        exposed_share=0.0 if hand_scheduled else None,
        guide=guide,
    )


def _tutorial_matmul(
    chip: Chip, dtype: str, a_reads: float, b_reads: float, a_piece: float, b_piece: float
) -> Work:
    """4096x8192x8192 (M, K, N) with the stated number of reads and lengths of contiguous pieces."""
    size = 4 if dtype == F32 else 2
    a_bytes, b_bytes = 4096 * 8192 * size, 8192 * 8192 * size
    product = matmul(4096, 8192, 8192, chip=chip, dtype=dtype, lnc=1, read_a=False, read_b=False)
    reads = a_reads * a_bytes + b_reads * b_bytes
    pieces = a_reads * a_bytes / a_piece + b_reads * b_bytes / b_piece
    return product + Work(
        hbm_read_bytes=reads, dma_descriptors=pieces + product.hbm_write_bytes / (512 * size)
    )


def _trn2_matmul(name: str, ms: float, *sizes: float, guide: bool = False) -> Measurement:
    return _row(
        f"matmul 4096x8192x8192 float32, {name}",
        ms,
        _tutorial_matmul(TRN2, F32, *sizes),
        source="matmul-tutorial",
        chip=TRN2,
        hand_scheduled=True,
        guide=guide,
    )


def _trn1_matmul(name: str, ms: float, *sizes: float) -> Measurement:
    return _row(
        f"matmul 4096x8192x8192 bfloat16, {name}",
        ms,
        _tutorial_matmul(TRN1, "bfloat16", *sizes),
        source="matmul-tutorial-trn1",
        hand_scheduled=True,
    )


def _mamba(
    channels: int,
    length: int,
    *,
    states: int = 16,
    vector_passes: float,
    instructions: int,
    tile: int = 512,
) -> Work:
    """Scan over states: products with B and C read PSUM broadcasts, so they take N, others 2N."""
    steps = channels / 128 * states * length
    issued = steps / tile * instructions
    traffic = 4.0 * length * (3 * channels + 2 * states)
    return Work(
        lanes={
            Lane("vector", "1x"): Activity(issued, vector_passes * steps, issued),
            Lane("scalar", "1x"): Activity(steps / tile, steps, steps / tile),
        },
        hbm_read_bytes=traffic * 3 / 4,
        hbm_write_bytes=traffic / 4,
    )


def _fused_mamba(name: str, ms: float, channels: int, length: int, version: int) -> Measurement:
    # Version 1 forms delta x u again for every state; later ones have six passes in four
    # instructions: times B, scan, times C, sum over states.
    work = _mamba(
        channels,
        length,
        vector_passes=8 if version == 1 else 6,
        instructions=5 if version == 1 else 4,
    )
    return _row(
        f"fused Mamba {name}, version {version}",
        ms,
        work,
        source="mamba-tutorial",
        hand_scheduled=True,
    )


def _traffic(read_mb: float, write_mb: float) -> Work:
    return Work(hbm_read_bytes=read_mb * MEGA, hbm_write_bytes=write_mb * MEGA)


def _on_chip_matmul(m: int, k: int, n: int, *, batch: int = 1) -> Work:
    return matmul(
        *(m, k, n), chip=TRN1, dtype=F32, batch=batch, read_a=False, read_b=False, write_out=False
    )


def _bench(name: str, ms: float, work: Work) -> Measurement:
    return _row(name, ms, work, source="accelopt")


def _engines(elements: float, *, vector: float, scalar: float = 0.0, tile: int = 2048) -> Work:
    return Work(lanes=passes(elements, chip=TRN1, vector=vector, scalar=scalar, tile_elements=tile))


def _transposes(rows: int, columns: int) -> Work:
    """Tensor-engine transposes of an fp32 operand, and their way out of PSUM."""
    tiles = rows * columns / 128 / 128
    return Work(
        lanes={
            Lane("tensor", "fp32"): Activity(tiles, tiles * 128),
            Lane("vector", "1x"): Activity(tiles, tiles * 128),
        }
    )


def _on_chip_attention() -> Work:
    work = attention(
        chip=TRN1,
        q_heads=16,
        kv_heads=8,
        q_length=4096,
        kv_length=4096,
        head_dim=128,
        causal=False,
        dtype=F32,
    )
    return Work(lanes=work.lanes, flops=work.flops)


def _rope() -> Work:
    """64 heads of 4096 x 128: four products and two sums over halves of 64 elements."""
    tiles = 64 * 4096 / 128
    return Work(
        lanes={Lane("vector", "1x"): Activity(6 * tiles, 6 * tiles * 2 * 64, 6 * tiles)},
    ) + _traffic(268.4, 134.2)


_SILU = elementwise("silu", 4096 * 7168, chip=TRN1, inputs=(F32,), output=F32)
_ADAMW = elementwise("adamw", 10944 * 2048, chip=TRN1, inputs=(F32,) * 4, output=F32)
_RMS = 4096 * 1024.0

MEASUREMENTS: tuple[Measurement, ...] = (
    # Pieces: 512 B and 2 KiB of a tile row; blocks of 2 and 2, then of K as well.
    _trn2_matmul("naive", 39.89, 16, 32, 512, 2048, guide=True),
    _trn2_matmul("loads hoisted", 28.20, 1, 32, 512, 2048),
    _trn2_matmul("free axes blocked", 28.41, 8, 16, 1024, 4096),
    _trn2_matmul("all axes blocked", 28.30, 4, 2, 4096, 4096, guide=True),
    _trn1_matmul("naive", 51.80, 16, 32, 256, 1024),
    _trn1_matmul("loads hoisted", 42.96, 1, 32, 256, 1024),
    _trn1_matmul("free axes blocked", 22.07, 8, 16, 512, 2048),
    _trn1_matmul("all axes blocked", 6.97, 4, 2, 4096, 2048),
    _fused_mamba("256 channels, 512 long", 0.17293, 256, 512, 1),
    _fused_mamba("4096 channels, 512 long", 2.34, 4096, 512, 1),
    _fused_mamba("4096 channels, 512 long", 1.61, 4096, 512, 2),
    *(
        _fused_mamba(f"4096 channels, {length} long", ms, 4096, length, 3)
        for length, ms in (
            *((1024, 3.3), (2048, 6.6), (3072, 10.1), (4096, 13.3), (5120, 17.3)),
            *((6144, 19.6), (7168, 24.2), (8192, 27.8)),
        )
    ),
    _bench(
        "matmul 4096x5120x12288", 35.20, _on_chip_matmul(4096, 5120, 12288) + _traffic(9060, 201)
    ),
    _bench(
        "transposed matmul 4096x2048x10944",
        9.61,
        matmul(4096, 2048, 10944, chip=TRN1, dtype=F32) + _transposes(4096, 2048),
    ),
    _bench(
        "LoRA 4096x5120x12288, rank 128",
        30.17,
        _on_chip_matmul(4096, 5120, 12288)
        + _on_chip_matmul(4096, 5120, 128)
        + _on_chip_matmul(4096, 128, 12288)
        + _transposes(4096, 5120)
        + _traffic(2341.8, 1269.6),
    ),
    _bench("attention 16/8 heads x 128, 4096", 19.11, _on_chip_attention() + _traffic(1194, 1133)),
    _bench(
        "attention 16/8 heads x 128, 4096, best", 17.27, _on_chip_attention() + _traffic(1466, 82)
    ),
    _bench(
        "batched matmul 16x4096x64x4096, best",
        4.33,
        _on_chip_matmul(4096, 64, 4096, batch=16) + _traffic(33.6, 1073.7),
    ),
    _bench(
        "batched matmul and softmax 16x4096x64x4096",
        12.00,
        _on_chip_matmul(4096, 64, 4096, batch=16)
        + _engines(16 * 4096 * 4096, vector=2, scalar=1, tile=4096)
        + _traffic(794.4, 1827.4),
    ),
    _bench(
        "SwiGLU 4096x1024x3072",
        4.22,
        2 * _on_chip_matmul(4096, 1024, 3072)
        + _on_chip_matmul(4096, 3072, 1024)
        + _transposes(4096, 1024)
        + _engines(4096 * 3072, vector=2, scalar=1)
        + _traffic(141.6, 83.9),
    ),
    # The first version divides x by 1 + exp(-x) with vector instructions.
    _bench(
        "SiLU 4096x7168",
        1.333,
        _engines(4096 * 7168, vector=3, scalar=2) + _traffic(117.4, 117.4),
    ),
    _bench("SiLU 4096x7168, best", 0.798, _SILU),
    _bench("rotary embedding 64 heads, 4096 x 128", 4.33, _rope()),
    _bench("rotary embedding 64 heads, 4096 x 128, best", 3.33, _rope()),
    _bench("AdamW 10944x2048", 2.00, _ADAMW),
    _bench("AdamW 10944x2048, best", 1.89, _ADAMW),
    _bench(
        "Mamba 256 channels, 7168 long",
        2.89,
        _mamba(256, 7168, vector_passes=8, instructions=5) + _traffic(126.6 - 22, 0),
    ),
    _bench(
        "Mamba 256 channels, 7168 long, best",
        2.278,
        _mamba(256, 7168, vector_passes=8, instructions=5) + _traffic(126.6 - 22, 0),
    ),
    _bench(
        "RMSNorm and matmul 4096x1024x2048",
        1.056,
        matmul(4096, 1024, 2048, chip=TRN1, dtype=F32)
        + _transposes(4096, 1024)
        + _engines(_RMS, vector=3, scalar=1, tile=1024),
    ),
    _bench(
        "add, RMSNorm and matmul 4096x1024x2048",
        1.222,
        _on_chip_matmul(4096, 1024, 2048)
        + _transposes(4096, 1024)
        + _engines(_RMS, vector=5, scalar=1, tile=1024)
        + _traffic(42.0, 33.6),
    ),
    _bench(
        "matmul, add and RMSNorm 4096x2048x2048",
        2.667,
        _on_chip_matmul(4096, 2048, 2048)
        + _transposes(4096, 2048)
        + _engines(4096 * 2048, vector=5, scalar=1)
        + _traffic(98.1, 33.6),
    ),
)

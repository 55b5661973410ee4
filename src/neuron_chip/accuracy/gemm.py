"""Published matrix products on one trn2 logical core (LNC 2)."""

from __future__ import annotations

from neuron_chip.accuracy.measurement import Measurement, launched, microseconds, seconds_at
from neuron_chip.chips import TRN2
from neuron_chip.counts import matmul


def _gemm(
    m: int,
    k: int,
    n: int,
    us: float,
    *,
    dtype: str = "bfloat16",
    out_dtype: str | None = None,
    software: str = "eager",
    source: str = "xpu-perf",
    guide: bool = False,
    note: str = "",
    busy_neighbours: bool = False,
) -> Measurement:
    work = matmul(m, k, n, chip=TRN2, dtype=dtype, out_dtype=out_dtype)
    return Measurement(
        name=f"matmul {m}x{k}x{n} {dtype}, {software}{note}",
        group="GEMM",
        seconds=microseconds(us),
        source=source,
        work=launched(work),
        software=software,
        guide=guide,
        busy_neighbours=busy_neighbours,
    )


def _at_rate(m: int, k: int, n: int, tflops: float, dtype: str, source: str) -> Measurement:
    return _gemm(m, k, n, 2e-6 * m * k * n / tflops, dtype=dtype, source=source)


def _weight_bound(dtype: str, element_bytes: int, gigabytes_per_second: float) -> Measurement:
    num_bytes = element_bytes * (2 * 128 * 8192 + 8192 * 8192)
    us = 1e6 * seconds_at(num_bytes, gigabytes_per_second)
    return _gemm(128, 8192, 8192, us, dtype=dtype)


# M, K, N in the order of the source's table: M x N x K where it prints three sizes.
MEASUREMENTS: tuple[Measurement, ...] = (
    _gemm(1024, 4096, 4096, 279.9, guide=True),  # two runs: 276.8 and 282.9
    _gemm(1024, 4096, 4096, 289.9, software="compiled"),
    _gemm(2048, 4096, 4096, 530.9),
    _gemm(2048, 4096, 4096, 539.9, software="compiled"),
    _gemm(1024, 4096, 4096, 305.2, dtype="float16"),
    _gemm(1024, 4096, 4096, 990.9, dtype="float32"),
    _gemm(2048, 2048, 2048, 192.6, guide=True),
    _gemm(2048, 2048, 2048, 187.3, software="compiled"),
    _gemm(4096, 4096, 4096, 1031.4, guide=True),
    _gemm(4096, 4096, 4096, 1017.0, software="compiled"),
    _gemm(12288, 8192, 8192, 11038.1),
    _gemm(32768, 1024, 8192, 3755.8, dtype="float16"),
    _gemm(3968, 1024, 8192, 1802.7, dtype="float32"),
    _gemm(2, 1024, 8192, 70.2),
    _gemm(2, 1024, 8192, 632.3, note=", 4 cores busy", busy_neighbours=True, guide=True),
    _at_rate(30720, 8192, 8192, 150.21, "bfloat16", "xpu-perf"),
    _at_rate(8192, 4096, 4096, 143.0, "bfloat16", "xpu-perf"),
    _at_rate(10240, 17408, 5120, 152.7, "bfloat16", "xpu-perf-qwen"),
    _at_rate(10240, 5120, 17408, 148.9, "bfloat16", "xpu-perf-qwen"),
    _at_rate(262144, 128, 128, 31.8, "bfloat16", "xpu-perf-qwen"),
    _at_rate(262144, 128, 128, 15.8, "float32", "xpu-perf-qwen"),
    _at_rate(1024, 5120, 248320, 147.0, "bfloat16", "xpu-perf-qwen"),
    _at_rate(4096, 5120, 248320, 94.2, "bfloat16", "xpu-perf-qwen"),
    _at_rate(10240, 5120, 248320, 71.0, "bfloat16", "xpu-perf-qwen"),
    _weight_bound("float32", 4, 500.0),
    _weight_bound("float16", 2, 573.0),
    _weight_bound("bfloat16", 2, 559.0),
    _gemm(
        *(4096, 4096, 4096, 559.8), dtype="float8_e5m2", out_dtype="bfloat16", software="compiled"
    ),
    _gemm(
        *(2048, 2048, 2048, 133.5), dtype="float8_e5m2", out_dtype="bfloat16", software="compiled"
    ),
    _gemm(8192, 8192, 128, 784.9, dtype="float32", note=", MoE gate"),
)

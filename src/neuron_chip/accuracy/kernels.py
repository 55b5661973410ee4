"""Published operators of native PyTorch on one trn2 logical core (LNC 2), eager unless said.

Rates are the best over shapes, so large tensors are priced: 16384 x 16384 elements.
"""

from __future__ import annotations

from neuron_chip.accuracy.measurement import Measurement, launched, microseconds, seconds_at
from neuron_chip.chips import TRN2
from neuron_chip.counts import (
    attention,
    attention_unfused,
    copy,
    elementwise,
    gather_elements,
    gather_rows,
    row_operation,
    top_k,
)
from neuron_chip.dtypes import dtype as dtype_row
from neuron_chip.work import Work

ROWS, LENGTH = 16384, 16384
ELEMENTS = ROWS * LENGTH
F32, F16, B16 = "float32", "float16", "bfloat16"


def _row(
    name: str,
    seconds: float,
    *work: Work,
    software: str = "eager",
    source: str = "xpu-perf",
    guide: bool = False,
    not_counted: str = "",
) -> Measurement:
    return Measurement(
        name=name,
        group="kernel",
        seconds=seconds,
        source=source,
        work=launched(*work, launches=float(len(work)) if software == "eager" else 1.0),
        software=software,
        guide=guide,
        not_counted=not_counted,
    )


def _element(
    function: str,
    dtype: str,
    rate: float,
    *,
    inputs: int = 1,
    output: str | None = None,
    label: str = "",
    guide: bool = False,
    not_counted: str = "",
) -> Measurement:
    output = output or dtype
    num_bytes = ELEMENTS * (inputs * dtype_row(dtype).bytes + dtype_row(output).bytes)
    work = elementwise(function, ELEMENTS, chip=TRN2, inputs=(dtype,) * inputs, output=output)
    return _row(
        f"{label or function} {dtype}, {rate:g} GB/s",
        seconds_at(num_bytes, rate),
        work,
        guide=guide,
        not_counted=not_counted,
    )


def _over_rows(operation: str, dtype: str, rate: float, *, writes: bool = True) -> Measurement:
    num_bytes = ELEMENTS * dtype_row(dtype).bytes * (2 if writes else 1)
    work = row_operation(operation, ROWS, LENGTH, chip=TRN2, dtype=dtype)
    return _row(f"{operation} {dtype}, {rate:g} GB/s", seconds_at(num_bytes, rate), work)


def _swiglu(dtype: str, rate: float) -> Measurement:
    """Eager code runs two operators: silu of one half, product with the other."""
    silu = elementwise("silu", ELEMENTS, chip=TRN2, inputs=(dtype,), output=dtype)
    mul = elementwise("mul", ELEMENTS, chip=TRN2, inputs=(dtype, dtype), output=dtype)
    seconds = seconds_at(3 * ELEMENTS * dtype_row(dtype).bytes, rate)
    return _row(f"swiglu {dtype}, {rate:g} GB/s", seconds, silu, mul)


def _topk(dtype: str, rate: float) -> Measurement:
    work = top_k(ROWS, LENGTH, 8, chip=TRN2, dtype=dtype)
    seconds = seconds_at(ELEMENTS * dtype_row(dtype).bytes, rate)
    return _row(f"topk k=8 {dtype}, {rate:g} GB/s", seconds, work)


def _vocabulary(rows: int, length: int, k: int, us: float) -> Measurement:
    work = top_k(rows, length, k, chip=TRN2)
    return _row(f"topk {rows}x{length} k={k}", microseconds(us), work, source="xpu-perf-qwen")


def _sdpa(name: str, us: float, *, software: str = "eager", **sizes: int) -> Measurement:
    work = attention(chip=TRN2, causal=sizes["q_length"] > 1, **sizes)  # type: ignore[arg-type]
    return _row(f"{name}, {software}", microseconds(us), work, software=software)


def _prefill(length: int, us: float, software: str = "eager") -> Measurement:
    return _sdpa(
        f"attention causal 8 heads x 128, {length}",
        us,
        software=software,
        q_heads=8,
        kv_heads=8,
        q_length=length,
        kv_length=length,
        head_dim=128,
    )


def _decode(batch: int, context: int, us: float) -> Measurement:
    return _sdpa(
        f"attention decode 80/8 heads x 128, batch {batch}, context {context}",
        us,
        batch=batch,
        q_heads=80,
        kv_heads=8,
        q_length=1,
        kv_length=context,
        head_dim=128,
    )


def _wide(length: int, us: float, *, tile: int | None = None) -> Measurement:
    """Heads of 256 have no fused kernel.

    Query tiles see keys up to their own end; the source keeps the scores of a tile under 1 GiB.
    """
    step = tile or length
    work = [
        phase
        for start in range(0, length, step)
        for phase in attention_unfused(
            chip=TRN2,
            q_heads=24,
            kv_heads=4,
            q_length=step,
            kv_length=start + step,
            head_dim=256,
        )
    ]
    return Measurement(
        name=f"attention causal 24/4 heads x 256, {length}"
        + (f", query tiles of {tile}" if tile else ""),
        group="kernel",
        seconds=microseconds(us),
        source="xpu-perf-qwen",
        work=launched(*work, launches=float(length // step)),
        software="eager",
    )


def _small(name: str, rows: int, us: float, software: str, *, guide: bool = False) -> Measurement:
    work = (
        elementwise("add", rows * 1024, chip=TRN2, inputs=(B16, B16))
        if name == "add"
        else row_operation("softmax", rows, 1024, chip=TRN2)
    )
    return _row(
        f"{name} {rows}x1024 bfloat16, {software}",
        microseconds(us),
        work,
        software=software,
        guide=guide,
    )


def _gelu(function: str, rows: int, columns: int, us: float) -> Measurement:
    work = elementwise(function, rows * columns, chip=TRN2)
    return _row(
        f"{function} {rows}x{columns} bfloat16", microseconds(us), work, source="xpu-perf-qwen"
    )


def _table(function: str, us: float) -> Measurement:
    work = elementwise(function, 16384 * 4304, chip=TRN2)
    return _row(f"{function} 16384x4304 bfloat16", microseconds(us), work, source="xpu-perf-qwen")


def _gather(name: str, rate: float, work: Work, num_bytes: float) -> Measurement:
    return _row(f"{name}, {rate:g} GB/s", seconds_at(num_bytes, rate), work)


_ROW_BYTES = 16384.0

MEASUREMENTS: tuple[Measurement, ...] = (
    _row(
        "device copy, 648.7 GB/s",
        seconds_at(2 * 2.0 * ELEMENTS, 648.7),
        copy(2.0 * ELEMENTS),
        guide=True,
    ),
    *(
        _element("add", dtype, rate, inputs=2, label="add/sub/mul", guide=True)
        for dtype, rate in ((F32, 605), (F16, 601), (B16, 600))
    ),
    *(
        _element("div", dtype, rate, inputs=2)
        for dtype, rate in ((F32, 379), (F16, 580), (B16, 574))
    ),
    _element("cast", F32, 617, output=B16),
    _element("cast", F16, 594, output=F32),
    _element("cast", B16, 593, output=F32),
    *(_element("silu", dtype, rate) for dtype, rate in ((F32, 587), (F16, 467), (B16, 471))),
    *(
        _element("exp", dtype, rate, label="exp/log/sqrt")
        for dtype, rate in ((F32, 568), (F16, 561), (B16, 550))
    ),
    *(_element("gelu_erf", dtype, rate) for dtype, rate in ((F32, 84), (F16, 43), (B16, 42))),
    *(_element("sin", dtype, rate) for dtype, rate in ((F32, 119), (F16, 42), (B16, 31))),
    *(
        _element("sin", dtype, rate, label="cos")
        for dtype, rate in ((F32, 111), (F16, 41), (B16, 30))
    ),
    *(
        _table(name, us)
        for name, us in (("erf", 6387), ("tanh", 499.5), ("sigmoid", 493.5), ("exp", 508.6))
    ),
    *(
        _over_rows("sum", dtype, rate, writes=False)
        for dtype, rate in ((F32, 639), (F16, 315), (B16, 315))
    ),
    *(
        _over_rows("max_with_index", dtype, rate, writes=False)
        for dtype, rate in ((F32, 177), (F16, 98), (B16, 97))
    ),
    *(_over_rows("softmax", dtype, rate) for dtype, rate in ((F32, 496), (F16, 291), (B16, 296))),
    *(_over_rows("rms_norm", dtype, rate) for dtype, rate in ((F32, 409), (F16, 323), (B16, 323))),
    *(
        _over_rows("layer_norm", dtype, rate)
        for dtype, rate in ((F32, 259), (F16, 172), (B16, 173))
    ),
    *(_swiglu(dtype, rate) for dtype, rate in ((F32, 312), (F16, 291), (B16, 292))),
    *(_topk(dtype, rate) for dtype, rate in ((F32, 476), (F16, 240), (B16, 239))),
    _gather(
        "index_select float32, rows of 16 KiB",
        631,
        gather_rows(65536, _ROW_BYTES),
        2 * 65536 * _ROW_BYTES,
    ),
    _gather(
        "embedding bfloat16, rows of 16 KiB",
        632,
        gather_rows(65536, _ROW_BYTES),
        2 * 65536 * _ROW_BYTES,
    ),
    _row(
        "gather with int64 index, 5.9 ns per element",
        5.9e-9 * 2**20,
        gather_elements(2**20, 4.0, index_bytes=8.0),
        guide=True,
    ),
    _small("add", 1024, 49.0, "eager", guide=True),  # 45.4 to 52.5
    _small("add", 2048, 58.0, "eager"),
    _small("softmax", 1024, 53.7, "eager"),  # 51.5 to 55.8
    _small("softmax", 2048, 68.6, "eager"),
    _small("add", 1024, 75.5, "compiled", guide=True),
    _small("add", 2048, 73.0, "compiled", guide=True),
    _small("softmax", 1024, 75.3, "compiled"),
    _small("softmax", 2048, 79.7, "compiled"),
    *(
        _vocabulary(*sizes)
        for sizes in (
            (1, 248320, 8, 558.3),
            (64, 248320, 8, 593.9),
            (1, 62080, 8, 165.1),
            (64, 62080, 8, 169.7),
            (1, 248320, 50, 5312.1),
            (64, 248320, 50, 5367.9),
            (1, 62080, 50, 1368.2),
        )
    ),
    *(
        _gelu("gelu_erf", *sizes)
        for sizes in (
            (16384, 1076, 1831.1),
            (4096, 4304, 1658.1),
            (1024, 4304, 432.9),
            (1024, 1076, 141.3),
        )
    ),
    *(
        _gelu("gelu_tanh", *sizes)
        for sizes in (
            (16384, 4304, 1749.0),
            (16384, 1076, 519.5),
            (4096, 4304, 455.0),
            (1024, 4304, 134.7),
            (1024, 1076, 61.3),
        )
    ),
    _prefill(2048, 346.5),
    _prefill(2048, 332.4, "compiled"),
    _prefill(4096, 780.9),
    _prefill(4096, 781.8, "compiled"),
    _decode(16, 4096, 1976.7),
    _decode(64, 4096, 4511.3),
    _decode(16, 10240, 6066.2),
    _wide(4096, 13700.0),
    _wide(10240, 282000.0),
    _wide(10240, 70400.0, tile=2048),
)

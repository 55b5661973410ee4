"""Published single instructions, single transfers and launches on trn2."""

from __future__ import annotations

from neuron_chip.accuracy.measurement import Measurement, launched, microseconds
from neuron_chip.chips import TRN2
from neuron_chip.cost import transfer_seconds
from neuron_chip.counts import elementwise, host_copy, matmul, row_operation
from neuron_chip.instructions import Issue, completion_seconds, issue_seconds
from neuron_chip.work import Work


def _instruction(
    name: str, label: str, ns: float, issue: Issue, *, waits: bool = True
) -> Measurement:
    extra = completion_seconds(issue, TRN2) if waits else 0.0
    return Measurement(
        name=label,
        group="micro",
        seconds=ns * 1e-9,
        source="matmul-tutorial dma-guide",
        modelled_seconds=issue_seconds(name, issue, TRN2) + extra,
        guide=True,
    )


def _lone_transfer(bytes_per_partition: int, saturation: float, *, guide: bool) -> Measurement:
    """128 partitions; the chart gives the share of the core's saturated rate."""
    num_bytes = 128.0 * bytes_per_partition
    return Measurement(
        name=f"DMA of 128 partitions x {bytes_per_partition} B, {100 * saturation:g} % of peak",
        group="micro",
        seconds=num_bytes / (saturation * TRN2.dma.bytes_per_second),
        source="dma-guide",
        modelled_seconds=transfer_seconds(
            TRN2, num_bytes=num_bytes, descriptor_bytes=bytes_per_partition
        ),
        guide=guide,
    )


def _one_engine(label: str, ns: float) -> Measurement:
    return Measurement(
        name=f"one DMA engine, 32 KiB {label}",
        group="micro",
        seconds=ns * 1e-9,
        source="dma-guide",
        modelled_seconds=transfer_seconds(
            TRN2, num_bytes=32768, descriptor_bytes=32768, partitions=1
        ),
    )


_MILLION = 1024 * 1024
_LINK = (
    elementwise("add", _MILLION, chip=TRN2, inputs=("bfloat16", "bfloat16")),
    elementwise("silu", _MILLION, chip=TRN2),
)


def _eager_chain(links: int, us: float) -> Measurement:
    return Measurement(
        name=f"chain of {links} silu(x + b), 1024x1024 bfloat16, eager",
        group="launch",
        seconds=microseconds(us),
        source="xpu-perf",
        work=tuple(links * phase for each in _LINK for phase in launched(each)),
        software="eager",
        guide=True,
    )


def _compiled_chain(links: int, us: float) -> Measurement:
    """One graph; the compiler keeps the 2 MiB between two operations on the chip."""
    inside = [Work(lanes=each.lanes) for each in _LINK]
    edge = Work(hbm_read_bytes=4.0 * _MILLION, hbm_write_bytes=2.0 * _MILLION)
    return Measurement(
        name=f"chain of {links} silu(x + b), 1024x1024 bfloat16, compiled",
        group="launch",
        seconds=microseconds(us),
        source="xpu-perf",
        work=launched(*(links * each for each in inside), edge),
        software="compiled",
    )


def _xla(name: str, us: float, work: Work, *, guide: bool = False) -> Measurement:
    """Means of two or three runs that differ by up to 40 %."""
    return Measurement(
        name=f"{name}, PyTorch/XLA",
        group="launch",
        seconds=microseconds(us),
        source="xpu-perf",
        work=launched(work),
        software="xla",
        guide=guide,
    )


def _host_copy(label: str, gigabytes_per_second: float) -> Measurement:
    return Measurement(
        name=f"copy {label}, {gigabytes_per_second:g} GB/s",
        group="launch",
        seconds=1.0 / gigabytes_per_second,
        source="xpu-perf",
        work=(host_copy(1e9),),
        software="eager",
        guide=True,
    )


MEASUREMENTS: tuple[Measurement, ...] = (
    _instruction(
        "activation", "activation, 128 elements", 400, Issue(engine="scalar", elements=128)
    ),
    _instruction(
        "activation", "activation, 4096 elements", 3710, Issue(engine="scalar", elements=4096)
    ),
    _instruction(
        "tensor_tensor",
        "tensor_tensor float32, PSUM and SBUF, 512 elements",
        685,
        Issue(engine="vector", elements=512, in_memories=("psum", "sbuf")),
    ),
    _instruction(
        "tensor_copy",
        "tensor_copy float32, 512 elements",
        420,
        Issue(engine="vector", elements=512),
    ),
    _instruction(
        "nc_matmul",
        "nc_matmul float32 128x128x512, back to back",
        859,
        Issue(
            engine="tensor",
            elements=512,
            in_dtypes=("float32", "float32"),
            out_memory="psum",
        ),
        waits=False,
    ),
    _one_engine("load", 1416),
    _one_engine("store", 1223),
    *(
        _lone_transfer(size, share, guide=size < 1024)
        for size, share in (
            *((64, 0.024), (256, 0.103), (512, 0.207), (1024, 0.42), (2048, 0.81)),
            *((4096, 0.966), (8192, 0.983), (32768, 1.0)),
        )
    ),
    *(_eager_chain(links, us) for links, us in ((1, 139.9), (4, 512.2), (16, 2035), (64, 8236))),
    *(
        _compiled_chain(links, us)
        for links, us in ((1, 102.7), (4, 97.2), (16, 205.9), (64, 706.5))
    ),
    Measurement(
        name="graph call with read-back of a small result, serving engine",
        group="launch",
        seconds=microseconds(133),
        source="kiln",
        work=(Work(launches=1, read_backs=1),),
        software="serving",
        guide=True,
    ),
    _host_copy("host to device", 14.0),
    _host_copy("device to host", 14.3),
    _xla("add 1024x1024 bfloat16", 711.2, _LINK[0], guide=True),
    _xla("softmax 1024x1024 bfloat16", 612.2, row_operation("softmax", 1024, 1024, chip=TRN2)),
    _xla("matmul 1024x4096x4096 bfloat16", 675.0, matmul(1024, 4096, 4096, chip=TRN2)),
    _xla(
        "matmul 1024x4096x4096 float32",
        1384.0,
        matmul(1024, 4096, 4096, chip=TRN2, dtype="float32"),
    ),
)

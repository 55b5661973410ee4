"""GPU instances to compare with, and a roofline of their work. No GPU is modelled in detail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from neuron_chip import sources
from neuron_chip.lookup import find

if TYPE_CHECKING:
    from neuron_chip.work import Work


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """Data-sheet rates of one GPU and the share of them that kernels were seen to reach."""

    name: str
    memory_bytes: float
    bytes_per_second: float
    bf16_flops_per_second: float
    fp8_flops_per_second: float | None
    fp32_flops_per_second: float | None
    gemm_efficiency: float
    memory_efficiency: float
    source: str

    def __post_init__(self) -> None:
        sources.check(self.source)


# An H100 reached 810.6 of 989.4 TFLOPS and 2,985 of 3,350 GB/s on the same benchmark as trn2
# (github.com/whn09/xpu-perf); the others are taken to do as well.
_GEMM, _MEMORY = 0.82, 0.89


def _gpu(
    name: str,
    gigabytes: float,
    terabytes_per_second: float,
    bf16_tflops: float,
    fp8_tflops: float | None,
    fp32_tflops: float | None,
) -> Gpu:
    return Gpu(
        name=name,
        memory_bytes=gigabytes * 1e9,
        bytes_per_second=terabytes_per_second * 1e12,
        bf16_flops_per_second=bf16_tflops * 1e12,
        fp8_flops_per_second=None if fp8_tflops is None else fp8_tflops * 1e12,
        fp32_flops_per_second=None if fp32_tflops is None else fp32_tflops * 1e12,
        gemm_efficiency=_GEMM,
        memory_efficiency=_MEMORY,
        source="nvidia xpu-perf",
    )


H100 = _gpu("H100 SXM5", 80, 3.35, 989.4, 1979, 67)
H200 = _gpu("H200", 141, 4.8, 989.4, 1979, 67)
B200 = _gpu("B200", 180, 8.0, 2250, 4500, None)
A100 = _gpu("A100 SXM4 40 GB", 40, 1.555, 312, None, 19.5)
A100_80 = _gpu("A100 SXM4 80 GB", 80, 2.039, 312, None, 19.5)
L40S = _gpu("L40S", 48, 0.864, 362, 733, 91.6)
L4 = _gpu("L4", 24, 0.300, 121, 242, 30.3)
A10G = _gpu("A10G", 24, 0.600, 70, None, 35)


@dataclass(frozen=True, kw_only=True)
class GpuInstance:
    """A rentable machine with GPUs; its price is in `prices`."""

    name: str
    gpu: Gpu
    num_gpus: int
    source: str = "ec2"


GPU_INSTANCES: tuple[GpuInstance, ...] = tuple(
    GpuInstance(name=name, gpu=gpu, num_gpus=num_gpus)
    for name, gpu, num_gpus in (
        ("p5.4xlarge", H100, 1),
        ("p5.48xlarge", H100, 8),
        ("p5e.48xlarge", H200, 8),
        ("p5en.48xlarge", H200, 8),
        ("p6-b200.48xlarge", B200, 8),
        ("p4d.24xlarge", A100, 8),
        ("p4de.24xlarge", A100_80, 8),
        ("g6e.xlarge", L40S, 1),
        ("g6e.2xlarge", L40S, 1),
        ("g6e.4xlarge", L40S, 1),
        ("g6e.8xlarge", L40S, 1),
        ("g6e.12xlarge", L40S, 4),
        ("g6e.16xlarge", L40S, 1),
        ("g6e.24xlarge", L40S, 4),
        ("g6e.48xlarge", L40S, 8),
        ("g6.xlarge", L4, 1),
        ("g6.4xlarge", L4, 1),
        ("g5.xlarge", A10G, 1),
    )
)

_BY_NAME: dict[str, GpuInstance] = {row.name: row for row in GPU_INSTANCES}


def gpu_instance(name: str) -> GpuInstance:
    """The GPU instance called `name`, for example "p5en.48xlarge"."""
    return find(_BY_NAME, name, kind="GPU instance")


def gpu_seconds(work: Work, gpu: Gpu) -> float:
    """Roofline time of the same useful work on one GPU.

    Matrix products at the seen share of the peak, HBM traffic without what only SBUF's size
    caused, the longer of the two. Launches and collectives are not counted: a GPU's best case.
    """
    rates = {
        "bf16": gpu.bf16_flops_per_second,
        "fp8": gpu.fp8_flops_per_second or gpu.bf16_flops_per_second,
        "mx": gpu.fp8_flops_per_second or gpu.bf16_flops_per_second,
        # Frameworks run fp32 products as TF32 at half the bf16 rate on these GPUs.
        "fp32": gpu.bf16_flops_per_second / 2,
        "vector": gpu.fp32_flops_per_second or gpu.bf16_flops_per_second / 16,
    }
    compute = sum(
        count / (rates.get(kind, gpu.bf16_flops_per_second) * gpu.gemm_efficiency)
        for kind, count in work.flops.items()
    )
    traffic = max(0.0, work.hbm_bytes - work.spill_bytes)
    return max(compute, traffic / (gpu.bytes_per_second * gpu.memory_efficiency))

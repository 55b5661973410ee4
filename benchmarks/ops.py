"""One op at a time: neuron beside the CPU device at the same dtype and in fp32, and the roofline.

Each row is measured in turns, so that a noisy moment hits all alike; the medians are shown.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from host import Peaks, heading, peaks, save, table, verdict
from timing import medians
from torch import Tensor
from torch.nn import functional

Op = Callable[[], object]
# Makes the op for a device and a dtype.
Make = Callable[[str, torch.dtype], Op]

BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32
NAMES = {BF16: "bf16", FP16: "fp16", FP32: "fp32", torch.float8_e4m3fn: "fp8 e4m3"}
# A CPU without instructions for a dtype takes minutes for one product of it: left out above this.
CPU_LIMIT_S = 3.0


@dataclass(frozen=True, kw_only=True)
class Case:
    """One op with one shape in one dtype."""

    group: str
    name: str
    dtype: torch.dtype
    make: Make
    flops: float = 0.0
    num_bytes: float = 0.0
    reference: torch.dtype = FP32


@dataclass(frozen=True, kw_only=True)
class Row:
    """A case with its medians in seconds; nan where it was left out."""

    case: Case
    ours: float
    cpu: float
    cpu_fp32: float

    def of_peak(self, limits: Peaks) -> float:
        """Share of the roofline: of the sgemm rate, or of the copy's bandwidth."""
        floor = max(
            self.case.flops / limits.sgemm_flops_per_s,
            self.case.num_bytes / limits.copy_bytes_per_s,
        )
        return floor / self.ours


def randn(*shape: int, device: str, dtype: torch.dtype) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(dtype).to(device)


def matmul(m: int, n: int, k: int) -> Make:
    def make(device: str, dtype: torch.dtype) -> Op:
        a = randn(m, k, device=device, dtype=dtype)
        weight = randn(n, k, device=device, dtype=dtype)
        return lambda: functional.linear(a, weight)

    return make


def scaled_matmul(size: int) -> Make:
    def make(device: str, dtype: torch.dtype) -> Op:
        if dtype is FP32:
            return matmul(size, size, size)(device, dtype)
        a = randn(size, size, device=device, dtype=FP32).to(dtype)
        b = randn(size, size, device=device, dtype=FP32).to(dtype).t()
        one = torch.ones((), device=device)
        return lambda: torch._scaled_mm(a, b, one, one, out_dtype=BF16)

    return make


def gemm_cases(*, largest: int) -> Iterator[Case]:
    sizes = [size for size in (512, 1024, 2048, 4096) if size <= largest]
    for dtype in (BF16, FP16, torch.float8_e4m3fn):
        for size in sizes:
            yield Case(
                group="gemm" if dtype in (BF16, FP16) else "gemm fp8",
                name=f"{size} x {size} x {size}",
                dtype=dtype,
                make=scaled_matmul(size) if dtype.itemsize == 1 else matmul(size, size, size),
                flops=2.0 * size**3,
            )
    for dtype in (BF16, FP16):
        for m in (1, 4, 16):
            yield Case(
                group="decode" if m == 1 else "gemm skinny",
                name=f"{m} x 4096 x 4096",
                dtype=dtype,
                make=matmul(m, 4096, 4096),
                num_bytes=4096.0 * 4096 * 2,
            )


POINTWISE: dict[str, tuple[int, Callable[[Tensor, Tensor], Tensor]]] = {
    "add": (3, torch.add),
    "mul": (3, torch.mul),
    "exp": (2, lambda a, _: torch.exp(a)),
    "gelu": (2, lambda a, _: functional.gelu(a)),
    "silu": (2, lambda a, _: functional.silu(a)),
    "tanh": (2, lambda a, _: torch.tanh(a)),
    "relu": (2, lambda a, _: torch.relu(a)),
    "lerp": (3, lambda a, b: torch.lerp(a, b, 0.3)),
}
ROWS: dict[str, tuple[int, Callable[[Tensor], Tensor]]] = {
    "sum": (1, lambda x: x.sum(-1)),
    "softmax": (2, lambda x: torch.softmax(x, -1)),
    "layer_norm": (2, lambda x: functional.layer_norm(x, x.shape[-1:])),
    "rms_norm": (2, lambda x: functional.rms_norm(x, x.shape[-1:])),
}


def pointwise_cases() -> Iterator[Case]:
    for millions in (4, 16, 64):
        count = millions << 20
        for name, (touches, function) in POINTWISE.items():
            for dtype in (FP32, BF16):

                def make(
                    device: str,
                    dtype: torch.dtype,
                    function: Callable[[Tensor, Tensor], Tensor] = function,
                    count: int = count,
                ) -> Op:
                    a = torch.full((count,), 0.5, dtype=dtype, device=device)
                    b = torch.full((count,), 0.25, dtype=dtype, device=device)
                    return lambda: function(a, b)

                yield Case(
                    group="pointwise",
                    name=f"{name}, {millions} M",
                    dtype=dtype,
                    make=make,
                    num_bytes=float(touches * count * dtype.itemsize),
                )


def row_cases() -> Iterator[Case]:
    for name, (touches, function) in ROWS.items():
        for dtype in (FP32, BF16):

            def make(
                device: str, dtype: torch.dtype, function: Callable[[Tensor], Tensor] = function
            ) -> Op:
                x = randn(4096, 2048, device=device, dtype=dtype)
                return lambda: function(x)

            yield Case(
                group="rows",
                name=f"{name}, 4096 x 2048",
                dtype=dtype,
                make=make,
                num_bytes=float(touches * 4096 * 2048 * dtype.itemsize),
            )


def attention(*, backward: bool) -> Make:
    def make(device: str, dtype: torch.dtype) -> Op:
        q, k, v = (
            randn(1, 8, 4096, 64, device=device, dtype=dtype).requires_grad_(backward)
            for _ in range(3)
        )
        if not backward:
            return lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=True)

        def step() -> None:
            out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            torch.autograd.grad(out, (q, k, v), out.detach())

        return step

    return make


def attention_cases() -> Iterator[Case]:
    for backward in (False, True):
        for dtype in (BF16, FP32):
            # Two products of the causal half forward, five backward.
            flops = 2.0 * 8 * 4096**2 * 64 * (3.5 if backward else 1.0)
            yield Case(
                group="attention",
                name="8 heads x 4096 x 64, causal" + (", with backward" if backward else ""),
                dtype=dtype,
                make=attention(backward=backward),
                flops=flops,
            )


def cpu_takes(case: Case) -> float:
    """Seconds that the CPU device takes for one call, guessed from a 256-row product."""
    if case.flops == 0 or case.dtype is FP32:
        return 0.0
    if case.dtype.itemsize == 1:
        return float("inf")  # no CPU kernel to speak of
    run = matmul(256, 256, 256)("cpu", case.dtype)
    seconds = medians({"cpu": run}, samples=1)["cpu"]
    return seconds * case.flops / (2 * 256**3)


def measure(case: Case) -> Row:
    runs = {"ours": case.make("neuron", case.dtype), "cpu_fp32": case.make("cpu", FP32)}
    if case.dtype is not FP32 and cpu_takes(case) <= CPU_LIMIT_S:
        runs["cpu"] = case.make("cpu", case.dtype)
    times = medians(runs, samples=7, seconds_per_sample=0.02)
    cpu = times["cpu_fp32"] if case.dtype is FP32 else times.get("cpu", float("nan"))
    return Row(case=case, ours=times["ours"], cpu=cpu, cpu_fp32=times["cpu_fp32"])


def bars(rows: list[Row], limits: Peaks) -> list[str]:
    def of(group: str) -> list[Row]:
        return [row for row in rows if row.case.group == group]

    lines = []
    for group, bar in (("gemm", 0.85), ("gemm fp8", 0.70)):
        if chosen := of(group):
            worst = min(row.cpu_fp32 / row.ours for row in chosen)
            lines.append(
                verdict(f"{group}, worst share of the CPU's fp32 rate", worst, bar, at_least=True)
            )
    if chosen := of("decode"):
        worst = min(row.of_peak(limits) for row in chosen)
        lines.append(verdict("decode, worst share of the copy rate", worst, 0.75, at_least=True))
    if chosen := of("pointwise"):
        gains = [row.cpu / row.ours for row in chosen]
        lines.append(verdict("pointwise, worst gain over the CPU", min(gains), 2.5, at_least=True))
        lines.append(f"- pointwise, median gain: {statistics.median(gains):.2f}")
    if chosen := [row for row in of("attention") if row.case.dtype is BF16]:
        worst = max(row.ours / row.cpu_fp32 for row in chosen)
        lines.append(verdict("bf16 attention over the CPU's fp32", worst, 1.0, at_least=False))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--largest", type=int, default=4096, help="largest square product")
    parser.add_argument("--only", default="", help="groups whose name contains this")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    limits = peaks()
    cases = [
        *gemm_cases(largest=options.largest),
        *pointwise_cases(),
        *row_cases(),
        *attention_cases(),
    ]
    lines = heading("Ops on the host driver", limits)
    rows = []
    with torch.no_grad():
        for case in cases:
            if options.only not in case.group:
                continue
            with torch.set_grad_enabled("backward" in case.name):
                row = measure(case)
            rows.append(row)
            print(
                f"{case.group:12} {case.name:44} {NAMES[case.dtype]:9} {row.ours * 1e3:9.3f} ms "
                f"cpu/ours {row.cpu / row.ours:6.2f} fp32/ours {row.cpu_fp32 / row.ours:6.2f} "
                f"of peak {row.of_peak(limits):5.2f}",
                flush=True,
            )
    lines += table(
        (
            "op",
            "dtype",
            "neuron ms",
            "CPU ms",
            "CPU fp32 ms",
            "CPU / neuron",
            "fp32 / neuron",
            "of peak",
        ),
        (
            (
                f"{row.case.group}: {row.case.name}",
                NAMES[row.case.dtype],
                f"{row.ours * 1e3:.3f}",
                f"{row.cpu * 1e3:.3f}",
                f"{row.cpu_fp32 * 1e3:.3f}",
                f"{row.cpu / row.ours:.2f}",
                f"{row.cpu_fp32 / row.ours:.2f}",
                f"{row.of_peak(limits):.2f}",
            )
            for row in rows
        ),
    )
    lines += bars(rows, limits)
    print("\n".join(bars(rows, limits)))
    print(f"saved {save('ops', lines).name}")


if __name__ == "__main__":
    main()

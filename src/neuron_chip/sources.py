"""Where numbers come from: short keys that rows cite, spelled out once."""

from __future__ import annotations

NEURON_DOCS = "AWS Neuron documentation (SDK 2.32, read 2026-08)"

SOURCES: dict[str, str] = {
    "hw": f"{NEURON_DOCS}, architecture pages: trainium, trainium2, trainium3, inferentia2",
    "nki-v2": f"{NEURON_DOCS}, NKI guide: Trainium/Inferentia2 architecture",
    "nki-v3": f"{NEURON_DOCS}, NKI guide: Trainium2 architecture",
    "nki-v4": f"{NEURON_DOCS}, NKI guide: Trainium3 architecture",
    "perf-guide": f"{NEURON_DOCS}, NKI performance guide",
    "dma-guide": f"{NEURON_DOCS}, NKI DMA bandwidth guide and its profile pictures",
    "matmul-tutorial": f"{NEURON_DOCS}, NKI kernel optimization tutorial and its profiles",
    "isa-cost": "AWS NKI 1 instruction pages (cost column), kept in public repositories",
    "profiler": f"{NEURON_DOCS}, Neuron Explorer: profile schema and glossary",
    "collectives": f"{NEURON_DOCS}, collective communication pages and nccom-test samples",
    "lnc": f"{NEURON_DOCS}, logical NeuronCore configuration",
    "ec2": "Amazon EC2 instance pages and DescribeInstanceTypes, read 2026-10",
    "xpu-perf": "github.com/whn09/xpu-perf, trn2.3xlarge, TorchNeuron beta 4, 2026-09",
    "kiln": "github.com/foxl-ai/kiln, trn1/trn2, SDK 2.32, 2026-10",
    "xpu-perf-qwen": "github.com/whn09/xpu-perf, Qwen3.5-27B workload, trn2.3xlarge, 2026-09",
    "mamba-tutorial": f"{NEURON_DOCS}, NKI fused Mamba tutorial",
    "matmul-tutorial-trn1": "AWS Neuron documentation 2.20-2.26, NKI matmul tutorial",
    "accelopt": "github.com/zhang677/AccelOpt, NKIBench profiles, trn1.32xlarge, one core",
    "nxdi": f"{NEURON_DOCS}, NxD Inference tutorials and benchmark tables",
    "difflet": "github.com/ai-decentralized/Difflet, trn2.3xlarge, 2026-06..09",
    "torchneuron-users": "public reports of TorchNeuron users, 2026",
    "benchmarks": f"{NEURON_DOCS}, benchmark tables",
    "nvidia": "NVIDIA data sheets (H100, H200, L40S, B200, A100, L4, A10G)",
    "inference": "arithmetic on the other sources; see the comment beside the number",
}


def check(cited: str) -> None:
    """Assert that every space-separated key of `cited` is explained above."""
    keys = cited.split()
    assert keys, "a row cites no source"
    for key in keys:
        assert key in SOURCES, f"source {key!r} is not in SOURCES"

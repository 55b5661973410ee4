"""Published whole-model figures: language model serving, encoders, diffusion, training."""

from __future__ import annotations

from neuron_chip.accuracy.measurement import Measurement, milliseconds
from neuron_chip.collectives import group
from neuron_chip.counts import Phases, Transformer, decode_step, forward, prefill, training_step
from neuron_chip.counts.transformer import repeat
from neuron_chip.instances import Instance, instance
from neuron_chip.parts import Chip

TRN2_ONE, TRN2_16, TRN1_16 = (
    instance("trn2.3xlarge"),
    instance("trn2.48xlarge"),
    instance("trn1.32xlarge"),
)


def _llama(name: str, layers: int, hidden: int, heads: int, ffn: int) -> Transformer:
    return Transformer(
        name=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=8,
        head_dim=128,
        ffn=ffn,
        vocabulary=128256,
    )


def _qwen(name: str, layers: int, hidden: int, heads: int, ffn: int) -> Transformer:
    return Transformer(
        name=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=8,
        head_dim=128,
        ffn=ffn,
        vocabulary=151936,
    )


def _encoder(name: str, layers: int, hidden: int, heads: int, ffn: int, dim: int) -> Transformer:
    return Transformer(
        name=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=dim,
        ffn=ffn,
        vocabulary=0,
        gated=False,
        causal=False,
    )


LLAMA_8B = _llama("Llama-3.1-8B", 32, 4096, 32, 14336)
LLAMA_8B_INT8 = Transformer(
    name="Llama-3-8B int8 weights",
    layers=32,
    hidden=4096,
    heads=32,
    kv_heads=8,
    head_dim=128,
    ffn=14336,
    vocabulary=128256,
    weight_dtype="int8",
)
LLAMA_70B = _llama("Llama-3.3-70B", 80, 8192, 64, 28672)
LLAMA_405B = _llama("Llama-3.1-405B", 126, 16384, 128, 53248)
QWEN_8B = _qwen("Qwen3-8B", 36, 4096, 32, 12288)
QWEN_32B = _qwen("Qwen3-32B", 64, 5120, 64, 25600)
# Latent attention has about as many weights as these heads.
DEEPSEEK_V3 = Transformer(
    name="DeepSeek-V3",
    layers=61,
    hidden=7168,
    heads=128,
    kv_heads=1,
    head_dim=128,
    ffn=2048,
    vocabulary=129280,
    experts=256,
    experts_per_token=8,
    shared_ffn=2048,
)
BERT_BASE = _encoder("BERT-base", 12, 768, 12, 3072, 64)
BERT_LARGE = _encoder("BERT-large", 24, 1024, 16, 4096, 64)
DISTILBERT = _encoder("DistilBERT", 6, 768, 12, 3072, 64)
# 19 double and 38 single blocks; both hold 12 hidden^2 weights per token.
FLUX = _encoder("FLUX.1-dev", 57, 3072, 24, 12288, 128)
# Cross-attention to the text counts as 5,120 more features of the MLP.
WAN = _encoder("Wan 14B", 40, 5120, 40, 13824 + 5120, 128)


def _row(
    name: str,
    ms: float,
    work: Phases,
    *,
    chip: Chip,
    source: str,
    software: str = "runtime",
    not_counted: str = "",
    guide: bool = False,
) -> Measurement:
    return Measurement(
        name=name,
        guide=guide,
        group="model",
        seconds=milliseconds(ms),
        source=source,
        work=work,
        chip=chip,
        software=software,
        not_counted=not_counted,
    )


def _software(stack: str) -> str:
    """NxD Inference calls hand-written kernels; the others leave whole graphs to the compiler."""
    return "runtime" if stack == "NxD Inference" else "serving"


def _decode(
    model: Transformer,
    where: Instance,
    tp: int,
    context: int,
    ms: float,
    *,
    source: str,
    stack: str,
    batch: int = 1,
) -> Measurement:
    work = decode_step(
        model, chip=where.chip, batch=batch, context=context, tp=tp, members=group(where, tp)
    )
    return _row(
        f"{model.name} TP{tp} time per token, {stack}",
        ms,
        work,
        chip=where.chip,
        source=source,
        software=_software(stack),
    )


def _first_token(
    model: Transformer,
    where: Instance,
    tp: int,
    prompt: int,
    ms: float,
    *,
    source: str,
    stack: str,
    chunk: int | None = None,
    not_counted: str = "",
    guide: bool = False,
) -> Measurement:
    work = prefill(
        *(model,), chip=where.chip, prompt=prompt, chunk=chunk, tp=tp, members=group(where, tp)
    )
    return _row(
        f"{model.name} TP{tp} time to first of {prompt} tokens, {stack}",
        ms,
        work,
        chip=where.chip,
        source=source,
        software=_software(stack),
        not_counted=not_counted,
        guide=guide,
    )


def _bert(model: Transformer, batch: int, ms: float) -> Measurement:
    chip = TRN1_16.chip
    work = forward(model, chip=chip, batch=batch, q_length=128, kv_length=128, all_logits=True)
    return _row(
        f"{model.name} batch {batch}, 128 tokens, one core",
        ms,
        work,
        chip=chip,
        source="benchmarks",
    )


def _denoise(model: Transformer, tokens: int, ms: float) -> Measurement:
    chip = TRN2_ONE.chip
    work = forward(
        model,
        chip=chip,
        batch=1,
        q_length=tokens,
        kv_length=tokens,
        tp=4,
        members=group(TRN2_ONE, 4),
    )
    return _row(
        f"{model.name} TP4 denoising step, {tokens} tokens",
        ms,
        work,
        chip=chip,
        source="difflet",
    )


def _training(
    model: Transformer, sequences_per_second: float, *, pipeline: int, replicas: int
) -> Measurement:
    """32 x trn1.32xlarge, TP32 inside an instance, stages and replicas over instances.

    A pipeline without bubbles works on as many sequences as it has stages.
    """
    chip = TRN1_16.chip
    step = training_step(
        *(model,), chip=chip, batch=1, length=8192, tp=32, members=group(TRN1_16, 32)
    )
    per_replica = sequences_per_second / replicas
    return _row(
        f"{model.name} training, 8192 tokens, 32 x trn1.32xlarge",
        1e3 / per_replica,
        repeat(step, 1.0 / pipeline),
        chip=chip,
        source="benchmarks",
        software="device",
    )


_YOUNG = "a young engine's prefill, 5 times slower than vLLM on the same chip"

MEASUREMENTS: tuple[Measurement, ...] = (
    _decode(LLAMA_70B, TRN2_16, 64, 10750, 19.6, source="nxdi", stack="NxD Inference"),
    _first_token(LLAMA_70B, TRN2_16, 64, 10000, 814.2, source="nxdi", stack="NxD Inference"),
    _decode(LLAMA_405B, TRN2_16, 64, 10750, 37.9, source="nxdi", stack="NxD Inference"),
    _first_token(LLAMA_405B, TRN2_16, 64, 10000, 2442, source="nxdi", stack="NxD Inference"),
    _decode(LLAMA_8B, TRN2_16, 8, 576, 10.52, source="nxdi", stack="vLLM", batch=2),
    _first_token(LLAMA_8B, TRN2_16, 8, 512, 51.1, source="nxdi", stack="vLLM"),
    _decode(LLAMA_8B, TRN2_ONE, 4, 2048, 9.98, source="kiln", stack="one graph"),
    _decode(QWEN_8B, TRN2_ONE, 4, 8192, 19.7, source="kiln", stack="vLLM"),
    _decode(QWEN_8B, TRN2_ONE, 4, 8192, 13.15, source="kiln", stack="Kiln"),
    _decode(QWEN_32B, TRN2_ONE, 4, 8192, 49.85, source="kiln", stack="vLLM"),
    _decode(QWEN_32B, TRN2_ONE, 4, 8192, 37.25, source="kiln", stack="Kiln"),
    *(
        _first_token(
            *(QWEN_8B, TRN2_ONE, 4, prompt, ms),
            source="kiln",
            stack="vLLM",
            chunk=chunk,
            guide=prompt in (8192, 16384),
        )
        for prompt, chunk, ms in (
            *((2048, 2048, 160), (8192, 8192, 606), (16384, 8192, 1387), (32704, 8192, 3496)),
        )
    ),
    *(
        _first_token(*(QWEN_32B, TRN2_ONE, 4, prompt, ms), source="kiln", stack="vLLM", chunk=2048)
        for prompt, ms in ((2048, 476), (8192, 2349), (16384, 5981), (32704, 17126))
    ),
    *(
        _first_token(
            *(model, TRN2_ONE, 4, prompt, ms),
            source="kiln",
            stack="Kiln",
            chunk=4096,
            not_counted=_YOUNG,
        )
        for model, prompt, ms in (
            *((QWEN_8B, 8192, 1653), (QWEN_8B, 16384, 4380), (QWEN_8B, 32704, 17570)),
            *((QWEN_32B, 8192, 4737), (QWEN_32B, 16384, 15500), (QWEN_32B, 32704, 61200)),
        )
    ),
    _first_token(QWEN_8B, TRN2_ONE, 4, 2048, 181, source="kiln", stack="Kiln", chunk=4096),
    _first_token(QWEN_32B, TRN2_ONE, 4, 2048, 705, source="kiln", stack="Kiln", chunk=4096),
    _decode(DEEPSEEK_V3, TRN2_16, 64, 512, 20.5, source="kiln", stack="NxD Inference"),
    _decode(LLAMA_8B, TRN1_16, 32, 8192, 7.03, source="benchmarks", stack="NxD Inference"),
    _decode(LLAMA_8B_INT8, TRN1_16, 32, 4096, 5.86, source="benchmarks", stack="NxD Inference"),
    _bert(BERT_BASE, 1, 0.943),
    _bert(BERT_BASE, 16, 1e3 * 16 / (3421 / 2)),
    _bert(BERT_LARGE, 1, 2.67),
    _bert(DISTILBERT, 1, 0.54),
    _denoise(FLUX, 4608, 269.2),
    _denoise(WAN, 4680, 565.2),
    _training(LLAMA_8B, 47.95, pipeline=1, replicas=32),
    _training(LLAMA_70B, 7.94, pipeline=8, replicas=4),
)

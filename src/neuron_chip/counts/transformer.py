"""Work of one rank of a transformer: decode, prefill and training steps under tensor parallelism.

A pass is a tuple of phases, because attention waits for its projections and they for a norm: each
phase is priced by itself (`cost.price_all`) and overlaps only inside. Norms and element-wise tails
are fused while the activations fit the chip, weights are read once per pass, two all-reduces end
the halves of a layer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from neuron_chip.collectives import Collective, Group
from neuron_chip.counts.attention import attention
from neuron_chip.counts.elementwise import elementwise
from neuron_chip.counts.matmul import matmul
from neuron_chip.counts.rows import row_operation
from neuron_chip.dtypes import dtype as dtype_row
from neuron_chip.work import Work

if TYPE_CHECKING:
    from neuron_chip.parts import Chip


Phases: TypeAlias = tuple[Work, ...]
"""Work of steps that wait for each other."""


@dataclass(frozen=True, kw_only=True)
class Transformer:
    """Sizes of a decoder, or of an encoder when `causal` is False."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocabulary: int
    gated: bool = True
    causal: bool = True
    experts: int = 1
    experts_per_token: int = 1
    shared_ffn: int = 0
    """Width of an expert that every token takes."""
    dtype: str = "bfloat16"
    weight_dtype: str | None = None

    @property
    def attention_width(self) -> int:
        """Output features of the query projection."""
        return self.heads * self.head_dim

    @property
    def layer_parameters(self) -> int:
        """Weights of one layer, all experts."""
        projections = 2 * self.attention_width + 2 * self.kv_heads * self.head_dim
        matrices = 3 if self.gated else 2
        mlp = matrices * self.hidden * (self.experts * self.ffn + self.shared_ffn)
        return self.hidden * projections + mlp

    @property
    def parameters(self) -> int:
        """Weights of all layers, the embedding and the output head."""
        return self.layers * self.layer_parameters + 2 * self.hidden * self.vocabulary


def _linear(
    model: Transformer, tokens: int, inputs: int, outputs: int, *, chip: Chip, lnc: int | None
) -> Work:
    """A product whose activations stay on the chip as far as they fit."""
    on_chip = tokens * max(inputs, outputs) * 2 < chip.sbuf.total_bytes
    return matmul(
        tokens,
        inputs,
        max(1, outputs),
        chip=chip,
        dtype=model.dtype,
        weight_dtype=model.weight_dtype,
        lnc=lnc,
        read_a=not on_chip,
        write_out=not on_chip,
    )


def _mlp(model: Transformer, tokens: int, tp: int, *, chip: Chip, lnc: int | None) -> Work:
    widths = (2 if model.gated else 1) * model.ffn // tp
    if model.experts == 1:
        up = _linear(model, tokens, model.hidden, widths, chip=chip, lnc=lnc)
        down = _linear(model, tokens, model.ffn // tp, model.hidden, chip=chip, lnc=lnc)
        return up + down
    # Experts that at least one token chose, were the choice even.
    chosen = tokens * model.experts_per_token
    active = model.experts * (1 - (1 - 1 / model.experts) ** chosen)
    each = max(1, math.ceil(chosen / active))
    expert = _linear(model, each, model.hidden, max(1, widths), chip=chip, lnc=lnc) + _linear(
        model, each, max(1, model.ffn // tp), model.hidden, chip=chip, lnc=lnc
    )
    work = active * expert
    if model.shared_ffn:
        work += 3 * _linear(
            model, tokens, model.hidden, max(1, model.shared_ffn // tp), chip=chip, lnc=lnc
        )
    return work


def layer(
    model: Transformer,
    *,
    chip: Chip,
    batch: int,
    q_length: int,
    kv_length: int,
    tp: int,
    members: Group | None = None,
    lnc: int | None = None,
) -> Phases:
    """One layer's forward pass on one of `tp` ranks."""
    tokens = batch * q_length
    heads = max(1, math.ceil(model.heads / tp))
    kv_heads = max(1, math.ceil(model.kv_heads / tp))
    heads = max(kv_heads, heads)
    width = heads * model.head_dim
    projections = width + 2 * kv_heads * model.head_dim
    norm = row_operation("rms_norm", tokens, model.hidden, chip=chip, dtype=model.dtype)
    gate = tokens * max(1, model.ffn // tp)
    pair = (model.dtype, model.dtype)
    rope = elementwise("mul", tokens * projections, chip=chip, inputs=pair, output=model.dtype)
    tail = elementwise("silu", gate, chip=chip) + elementwise("mul", gate, chip=chip, inputs=pair)
    attend = attention(
        chip=chip,
        batch=batch,
        q_heads=heads,
        kv_heads=kv_heads,
        q_length=q_length,
        kv_length=kv_length,
        head_dim=model.head_dim,
        causal=model.causal,
        dtype=model.dtype,
        through_hbm=False,
    )
    reduce = Work()
    if members is not None and tp > 1:
        reduce = _all_reduce(model, tokens, members)
    if tokens * model.hidden * dtype_row(model.dtype).bytes < chip.sbuf.total_bytes:
        # What is fused costs engine time only: its operands are on the chip.
        norm, rope, tail = (_without_traffic(each) for each in (norm, rope, tail))
    return (
        _linear(model, tokens, model.hidden, projections, chip=chip, lnc=lnc) + norm + rope,
        attend,
        _linear(model, tokens, width, model.hidden, chip=chip, lnc=lnc) + reduce,
        _mlp(model, tokens, tp, chip=chip, lnc=lnc) + norm + tail + reduce,
    )


def _without_traffic(work: Work) -> Work:
    return Work(lanes=work.lanes, flops=work.flops)


def _all_reduce(model: Transformer, tokens: int, members: Group) -> Work:
    num_bytes = tokens * model.hidden * dtype_row(model.dtype).bytes
    call = Collective(op="all_reduce", num_bytes=num_bytes, group=members)
    return Work(collectives={call: 1.0})


def forward(
    model: Transformer,
    *,
    chip: Chip,
    batch: int,
    q_length: int,
    kv_length: int,
    tp: int = 1,
    members: Group | None = None,
    lnc: int | None = None,
    all_logits: bool = False,
) -> Phases:
    """All layers and the output head, as one graph."""
    one = layer(
        model,
        chip=chip,
        batch=batch,
        q_length=q_length,
        kv_length=kv_length,
        tp=tp,
        members=members,
        lnc=lnc,
    )
    rows = batch * q_length if all_logits else batch
    head = Work(launches=1.0)
    if model.vocabulary:
        outputs = math.ceil(model.vocabulary / tp)
        head += _linear(model, rows, model.hidden, outputs, chip=chip, lnc=lnc)
    return (*repeat(one, model.layers), head)


def repeat(phases: Phases, times: float) -> Phases:
    """Every phase `times` times; equal phases stay one record."""
    return tuple(times * phase for phase in phases)


def decode_step(
    model: Transformer,
    *,
    chip: Chip,
    batch: int = 1,
    context: int,
    tp: int = 1,
    members: Group | None = None,
    lnc: int | None = None,
) -> Phases:
    """One new token for each sequence of the batch."""
    return forward(
        model,
        chip=chip,
        batch=batch,
        q_length=1,
        kv_length=context,
        tp=tp,
        members=members,
        lnc=lnc,
    )


def prefill(
    model: Transformer,
    *,
    chip: Chip,
    prompt: int,
    chunk: int | None = None,
    batch: int = 1,
    tp: int = 1,
    members: Group | None = None,
    lnc: int | None = None,
) -> Phases:
    """A prompt, in chunks that attend to all before them; each chunk is a graph."""
    size = min(chunk or prompt, prompt)
    parts: list[Work] = []
    for start in range(0, prompt, size):
        length = min(size, prompt - start)
        parts += forward(
            model,
            chip=chip,
            batch=batch,
            q_length=length,
            kv_length=start + length,
            tp=tp,
            members=members,
            lnc=lnc,
        )
    return tuple(parts)


def training_step(
    model: Transformer,
    *,
    chip: Chip,
    batch: int,
    length: int,
    tp: int = 1,
    members: Group | None = None,
    recompute: bool = False,
    lnc: int | None = None,
) -> Phases:
    """Forward and backward of one micro-batch, and the optimizer over this rank's weights.

    The backward pass does each product twice; recomputation adds one more forward pass.
    """
    passes = 4.0 if recompute else 3.0
    step = forward(
        model,
        chip=chip,
        batch=batch,
        q_length=length,
        kv_length=length,
        tp=tp,
        members=members,
        lnc=lnc,
        all_logits=True,
    )
    weights = model.parameters // tp
    update = elementwise("adamw", weights, chip=chip, inputs=("float32",) * 4, output="float32")
    return (*repeat(step, passes), update)

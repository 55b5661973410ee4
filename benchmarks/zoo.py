"""Models that the benchmarks share: each makes its module and one batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    ViTConfig,
    ViTModel,
    WhisperConfig,
)
from transformers.models.gpt2.modeling_gpt2 import GPT2Block
from transformers.models.whisper.modeling_whisper import WhisperEncoder

Batch = tuple[Tensor, ...]


@dataclass(frozen=True, kw_only=True)
class Model:
    """A module with a batch for it, and a loss of one number."""

    name: str
    make: Callable[[], nn.Module]
    batch: Callable[[], Batch]
    loss: Callable[[nn.Module, Batch], Tensor]
    convolutional: bool = False


def mean_square(output: object) -> Tensor:
    tensor = output if isinstance(output, Tensor) else output[0]  # type: ignore[index]
    return tensor.float().square().mean()


def language_loss(model: nn.Module, batch: Batch) -> Tensor:
    logits = model(batch[0], use_cache=False).logits
    return functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), batch[0][:, 1:].flatten())


def tokens(*shape: int, vocabulary: int) -> Callable[[], Batch]:
    return lambda: (torch.randint(vocabulary, shape),)


def noise(*shape: int) -> Callable[[], Batch]:
    return lambda: (torch.randn(*shape),)


class MixtureOfExperts(nn.Module):
    """Eight SwiGLU experts, two for each token, with a residual."""

    def __init__(self, width: int = 512, hidden: int = 1024, num_experts: int = 8) -> None:
        super().__init__()
        self.router = nn.Linear(width, num_experts, bias=False)
        self.up = nn.Parameter(torch.randn(num_experts, width, 2 * hidden) * width**-0.5)
        self.down = nn.Parameter(torch.randn(num_experts, hidden, width) * hidden**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        weights, chosen = self.router(x).float().softmax(-1).topk(2)
        out = torch.zeros_like(x)
        for expert in range(len(self.up)):
            token, slot = (chosen == expert).nonzero(as_tuple=True)
            gate, value = (x[token] @ self.up[expert]).chunk(2, -1)
            found = (functional.silu(gate) * value) @ self.down[expert]
            out = out.index_add(0, token, found * weights[token, slot, None].to(found.dtype))
        return x + out


class Residual(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, 1, 1, bias=False),
            nn.BatchNorm2d(channels),
        )
        self.way = (
            nn.Identity()
            if stride == 1 and channels_in == channels
            else nn.Conv2d(channels_in, channels, 1, stride, bias=False)
        )

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.body(x) + self.way(x))


def residual_network() -> nn.Module:
    stages = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1)]
    stages += [(128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
    return nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        *(Residual(*stage) for stage in stages),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(512, 1000),
    )


def gpt2_config() -> GPT2Config:
    # Dropout draws other numbers on each device, which no comparison of speed needs.
    return GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, attn_implementation="sdpa")


def llama_config() -> LlamaConfig:
    return LlamaConfig(
        vocab_size=8192,
        hidden_size=512,
        intermediate_size=1376,
        num_hidden_layers=8,
        num_attention_heads=8,
        num_key_value_heads=4,
        attn_implementation="sdpa",
    )


def of_output(model: nn.Module, batch: Batch) -> Tensor:
    return mean_square(model(*batch))


MODELS = (
    Model(
        name="GPT-2-small block",
        make=lambda: GPT2Block(gpt2_config(), layer_idx=0),
        batch=noise(4, 256, 768),
        loss=of_output,
    ),
    Model(
        name="GPT-2-small",
        make=lambda: GPT2LMHeadModel(gpt2_config()),
        batch=tokens(1, 256, vocabulary=50257),
        loss=language_loss,
    ),
    Model(
        name="Llama 8 x 512",
        make=lambda: LlamaForCausalLM(llama_config()),
        batch=tokens(2, 256, vocabulary=8192),
        loss=language_loss,
    ),
    Model(
        name="ViT-S",
        make=lambda: ViTModel(
            ViTConfig(
                hidden_size=384,
                num_attention_heads=6,
                intermediate_size=1536,
                hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
                attn_implementation="sdpa",
            ),
            add_pooling_layer=False,
        ),
        batch=noise(4, 3, 224, 224),
        loss=of_output,
    ),
    Model(
        name="ResNet-18-like",
        make=residual_network,
        batch=noise(4, 3, 160, 160),
        loss=of_output,
        convolutional=True,
    ),
    Model(
        name="Whisper-base encoder",
        make=lambda: WhisperEncoder(
            WhisperConfig(
                d_model=512,
                encoder_layers=6,
                encoder_attention_heads=8,
                encoder_ffn_dim=2048,
                dropout=0.0,
                attn_implementation="sdpa",
            )
        ),
        batch=noise(1, 80, 3000),
        loss=of_output,
    ),
    Model(
        name="MoE layer",
        make=MixtureOfExperts,
        batch=noise(1024, 512),
        loss=of_output,
    ),
)

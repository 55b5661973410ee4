"""Training steps of a Llama on device neuron: FSDP2 over data, tensor parallelism inside a group.

An ordinary torchrun program; nothing in it knows of planning:

    python -m torch_neuronx.planner --world-size 1024 --tp 8 --instance trn2.48xlarge \\
        examples/plan/llama_training.py --model 70b --tp 8
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


@dataclass(frozen=True, kw_only=True)
class Config:
    """Extents of a Llama."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    hidden: int
    vocabulary: int = 128256


CONFIGS = {
    "70b": Config(layers=80, width=8192, heads=64, kv_heads=8, hidden=28672),
    "8b": Config(layers=32, width=4096, heads=32, kv_heads=8, hidden=14336),
    "tiny": Config(layers=2, width=256, heads=8, kv_heads=8, hidden=512, vocabulary=1024),
}


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary positions on [batch, length, heads, size]."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


class Attention(nn.Module):
    """Grouped-query attention; the number of local heads follows from the weights."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.size = config.width // config.heads
        self.q = nn.Linear(config.width, config.heads * self.size, bias=False)
        self.k = nn.Linear(config.width, config.kv_heads * self.size, bias=False)
        self.v = nn.Linear(config.width, config.kv_heads * self.size, bias=False)
        self.out = nn.Linear(config.heads * self.size, config.width, bias=False)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = (p(x).view(batch, length, -1, self.size) for p in (self.q, self.k, self.v))
        q, k = rotate(q, cosine, sine), rotate(k, cosine, sine)
        mixed = functional.scaled_dot_product_attention(
            *(each.transpose(1, 2) for each in (q, k, v)), is_causal=True, enable_gqa=True
        )
        out: Tensor = self.out(mixed.transpose(1, 2).reshape(batch, length, -1))
        return out


class FeedForward(nn.Module):
    """A gated perceptron."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.gate = nn.Linear(config.width, config.hidden, bias=False)
        self.up = nn.Linear(config.width, config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.down(functional.silu(self.gate(x)) * self.up(x))
        return out


class Block(nn.Module):
    """One layer."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(config.width)
        self.attention = Attention(config)
        self.mlp_norm = nn.RMSNorm(config.width)
        self.mlp = FeedForward(config)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x), cosine, sine)
        out: Tensor = x + self.mlp(self.mlp_norm(x))
        return out


class Llama(nn.Module):
    """Tokens [batch, length] to logits."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocabulary, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        size = self.config.width // self.config.heads
        positions = torch.arange(tokens.shape[1], device=tokens.device, dtype=torch.float32)
        frequencies = 500000.0 ** (
            -torch.arange(0, size, 2, device=tokens.device, dtype=torch.float32) / size
        )
        angles = torch.outer(positions, frequencies)[:, None, :]
        dtype = self.norm.weight.dtype
        cosine, sine = angles.cos().to(dtype), angles.sin().to(dtype)
        x = self.embed(tokens)
        for block in self.blocks:
            # Activations of a layer are computed again in the backward pass.
            x = checkpoint(block, x, cosine, sine, use_reentrant=False)
        out: Tensor = self.head(self.norm(x))
        return out


def parallelize(model: Llama, mesh: DeviceMesh) -> None:
    """Tensor and sequence parallelism inside a group, FSDP2 over the groups."""
    tensor_mesh = mesh["tp"]
    parallelize_module(
        model,
        tensor_mesh,
        {
            "embed": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
            "norm": SequenceParallel(),
            "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
        },
    )
    for block in model.blocks:
        parallelize_module(
            block,
            tensor_mesh,
            {
                "attention_norm": SequenceParallel(),
                "attention": PrepareModuleInput(
                    input_layouts=(Shard(1), None, None),
                    desired_input_layouts=(Replicate(), None, None),
                ),
                **{f"attention.{name}": ColwiseParallel() for name in ("q", "k", "v")},
                "attention.out": RowwiseParallel(output_layouts=Shard(1)),
                "mlp_norm": SequenceParallel(),
                "mlp": PrepareModuleInput(
                    input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)
                ),
                "mlp.gate": ColwiseParallel(),
                "mlp.up": ColwiseParallel(),
                "mlp.down": RowwiseParallel(output_layouts=Shard(1)),
            },
        )
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:
        fully_shard(block, mesh=mesh["dp"], mp_policy=policy)
    fully_shard(model, mesh=mesh["dp"], mp_policy=policy)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=sorted(CONFIGS), default="tiny")
    parser.add_argument("--tp", type=int, default=1)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--length", type=int, default=8192)
    parser.add_argument("--steps", type=int, default=10)
    given = parser.parse_args()
    dist.init_process_group("neuron")
    mesh = init_device_mesh(
        "neuron",
        (dist.get_world_size() // given.tp, given.tp),
        mesh_dim_names=("dp", "tp"),
    )
    config = CONFIGS[given.model]
    with torch.device("meta"):
        model = Llama(config)
    parallelize(model, mesh)
    model.to_empty(device="neuron")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=False)
    for step in range(given.steps):
        tokens = torch.randint(config.vocabulary, (given.batch, given.length + 1), device="neuron")
        logits = model(tokens[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if dist.get_rank() == 0:
            print(f"step {step}: loss {loss.item():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

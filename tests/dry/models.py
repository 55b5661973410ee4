"""Five small models of five kinds, each with an input and a loss."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """A pre-norm decoder block with grouped keys."""

    def __init__(self, width: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        self.norm = nn.RMSNorm(width)
        self.qkv = nn.Linear(width, (heads + 2 * kv_heads) * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.mlp_norm = nn.RMSNorm(width)
        self.gate = nn.Linear(width, 2 * width, bias=False)
        self.up = nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        sizes = [self.heads * self.size, self.kv_heads * self.size, self.kv_heads * self.size]
        parts = self.qkv(self.norm(x)).split(sizes, dim=-1)
        q, k, v = (part.view(batch, length, -1, self.size).transpose(1, 2) for part in parts)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        h = self.mlp_norm(x)
        return x + self.down(functional.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(1000, 128)
        self.blocks = nn.ModuleList(Block(128, 8, 2) for _ in range(2))
        self.head = nn.Linear(128, 1000, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Gpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(500, 96)
        layer = nn.TransformerEncoderLayer(96, 4, 384, dropout=0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(96, 500)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=tokens.device)
        return self.head(self.layers(self.embed(tokens), mask=mask, is_causal=True))


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 7, stride=2, padding=3)
        self.norm = nn.BatchNorm2d(32)
        self.depthwise = nn.Conv2d(32, 32, 3, padding=1, groups=32)
        self.body = nn.Conv2d(32, 64, 3, stride=2, padding=1, bias=False)
        self.group_norm = nn.GroupNorm(8, 64)
        self.head = nn.Linear(64, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = functional.max_pool2d(functional.relu(self.norm(self.stem(images))), 3, 2, 1)
        x = functional.gelu(self.group_norm(self.body(self.depthwise(x))))
        return self.head(functional.adaptive_avg_pool2d(x, 1).flatten(1))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(300, 64)
        self.lstm = nn.LSTM(64, 96, num_layers=2, batch_first=True)
        self.head = nn.Linear(96, 300)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(self.embed(tokens))[0])


class Speech(nn.Module):
    """Convolutions over frames, an encoder, a decoder with cross-attention."""

    def __init__(self) -> None:
        super().__init__()
        self.frames = nn.Conv1d(80, 64, 3, stride=2, padding=1)
        self.transformer = nn.Transformer(64, 4, 2, 2, 256, batch_first=True, dropout=0.0)
        self.embed = nn.Embedding(200, 64)
        self.head = nn.Linear(64, 200)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        x = functional.gelu(self.frames(frames)).transpose(1, 2)
        tokens = torch.zeros(frames.shape[0], 12, dtype=torch.long, device=frames.device)
        return self.head(self.transformer(x, self.embed(tokens)))


def _tokens(most: int, *shape: int) -> Callable[[str], torch.Tensor]:
    return lambda device: torch.randint(0, most, shape, device=device)


def _numbers(*shape: int) -> Callable[[str], torch.Tensor]:
    return lambda device: torch.randn(*shape, device=device)


MODELS: dict[str, tuple[type[nn.Module], Callable[[str], torch.Tensor]]] = {
    "llama": (Llama, _tokens(1000, 2, 64)),
    "gpt": (Gpt, _tokens(500, 3, 40)),
    "convolutions": (Convolutions, _numbers(4, 3, 64, 64)),
    "recurrent": (Recurrent, _tokens(300, 4, 20)),
    "speech": (Speech, _numbers(2, 80, 50)),
}


def peaks(name: str, *, training: bool, dtype: torch.dtype = torch.float32) -> dict[str, int]:
    """Peaks of HBM of two training steps, or of two inferences, on the driver in use."""
    build, make_input = MODELS[name]
    torch.neuron.empty_cache()
    torch.neuron.reset_peak_memory_stats()
    start = torch.neuron.memory_allocated()
    with torch.device("neuron"):
        model = build().to(dtype)
    value = make_input("neuron")
    value = value.to(dtype) if value.is_floating_point() else value
    found = {}
    if not training:
        model.eval()
        with torch.no_grad():
            for index in range(2):
                model(value)
                found[f"call {index}"] = torch.neuron.max_memory_allocated() - start
        return found
    optimizer = torch.optim.AdamW(model.parameters())
    for index in range(2):
        logits = model(value).float()
        target = torch.zeros(logits[..., 0].numel(), dtype=torch.long, device="neuron")
        loss = functional.cross_entropy(logits.flatten(0, -2), target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        found[f"step {index}"] = torch.neuron.max_memory_allocated() - start
    found["at the end"] = torch.neuron.memory_allocated() - start
    return found

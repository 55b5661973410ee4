"""Audio per dollar: Whisper large-v3 transcribes batches of 30-second windows.

An ordinary inference program for one core; it only says what a step was worth:

    python -m neuron_explorer plan --world-size 4 --gpu g6e.xlarge --gpu p5.4xlarge \\
        examples/plan/whisper.py
    python -m neuron_explorer plan --world-size 4 --software compiled --sweep batch=1,8,32 \\
        examples/plan/whisper.py --batch {batch}

The four logical cores of a trn2.3xlarge work on batches of their own.

Weights are random: neither time nor memory depends on them.
"""

from __future__ import annotations

import argparse

import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration
from transformers.modeling_outputs import BaseModelOutput

import torch_neuronx

WINDOW_SECONDS = 30
LARGE = WhisperConfig(
    vocab_size=51866,
    num_mel_bins=128,
    d_model=1280,
    encoder_layers=32,
    decoder_layers=32,
    encoder_attention_heads=20,
    decoder_attention_heads=20,
    encoder_ffn_dim=5120,
    decoder_ffn_dim=5120,
)


@torch.inference_mode()
def transcribe(
    model: WhisperForConditionalGeneration, features: torch.Tensor, num_tokens: int
) -> torch.Tensor:
    """Greedy tokens [batch, num_tokens] of features [batch, mel bins, frames]."""
    encoded = BaseModelOutput(last_hidden_state=model.model.encoder(features).last_hidden_state)
    token = torch.full((features.shape[0], 1), 50258, device=features.device)
    tokens, cache = [], None
    for _ in range(num_tokens):
        out = model(
            encoder_outputs=encoded, decoder_input_ids=token, past_key_values=cache, use_cache=True
        )
        cache = out.past_key_values
        token = out.logits[:, -1:].argmax(-1)
        tokens.append(token)
    return torch.cat(tokens, dim=1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=100, help="of a window's transcript")
    given = parser.parse_args()
    with torch.device("neuron"):
        model = WhisperForConditionalGeneration(LARGE).to(torch.bfloat16).eval()
        features = torch.zeros(given.batch, 128, 3000, dtype=torch.bfloat16)
    for _ in range(2):
        transcribe(model, features, given.tokens)
        torch_neuronx.mark_step(WINDOW_SECONDS * given.batch, "audio seconds")


if __name__ == "__main__":
    main()

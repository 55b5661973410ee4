"""Recorded speech with its transcripts, out of the downloaded wheel."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .downloads import SPEECH, read_member
from .errors import DemoError

SAMPLE_RATE = 16_000  # what Whisper hears, and what the recordings have
PAUSE_SECONDS = 0.5
_MONO_FLOAT32 = (3, 1, SAMPLE_RATE)

# The recordings of one language that are sentences; the others count from one to ten.
SENTENCES = {
    "en": ("quick_brown_fox", "hello_world"),
    "es": ("pangrama", "hola_mundo"),
    "fr": ("pangrama", "bonjour_monde"),
    "it": ("pangrama", "ciao_mondo"),
    "pt": ("pangrama", "ola_mundo"),
}


@dataclass(frozen=True, kw_only=True)
class Recording:
    """Speech in one language: samples at 16 kHz, and what is said."""

    language: str
    samples: NDArray[np.float32]
    text: str

    @property
    def seconds(self) -> float:
        """How long the speech is."""
        return len(self.samples) / SAMPLE_RATE


def recording(language: str, *, downloads: Path) -> Recording:
    """The sentences of a language, one after the other with a pause between them."""
    folder = f"pytest_audioeval/samples/audio/{language}"
    names = SENTENCES[language]
    pause = np.zeros(int(PAUSE_SECONDS * SAMPLE_RATE), dtype=np.float32)
    pieces: list[NDArray[np.float32]] = []
    texts = []
    for name in names:
        pieces += [samples_of(read_member(SPEECH, f"{folder}/{name}.wav", folder=downloads)), pause]
        texts.append(read_member(SPEECH, f"{folder}/{name}.txt", folder=downloads).decode().strip())
    return Recording(language=language, samples=np.concatenate(pieces[:-1]), text=" ".join(texts))


def samples_of(wav: bytes) -> NDArray[np.float32]:
    """The samples of a RIFF file that holds one channel of 32-bit floats at 16 kHz.

    The wave module of Python 3.11 to 3.14 reads integers only.
    """
    chunks: dict[bytes, bytes] = {}
    offset = 12  # after "RIFF", the size and "WAVE"
    while offset + 8 <= len(wav):
        name, size = struct.unpack_from("<4sI", wav, offset)
        chunks[name] = wav[offset + 8 : offset + 8 + size]
        offset += 8 + size + size % 2
    if b"fmt " not in chunks or b"data" not in chunks:
        raise DemoError(f"A recording is no WAV file: it has the chunks {sorted(chunks)}.")
    form = struct.unpack_from("<HHI", chunks[b"fmt "])
    if form != _MONO_FLOAT32:
        raise DemoError(
            f"A recording has the format {form[0]} with {form[1]} channels at {form[2]} Hz; the "
            f"demo reads 32-bit floats (format 3) with 1 channel at {SAMPLE_RATE} Hz."
        )
    return np.frombuffer(chunks[b"data"], dtype="<f4").astype(np.float32)

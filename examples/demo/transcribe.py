"""Job: real speech to text with Whisper-base."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import WhisperFeatureExtractor, WhisperForConditionalGeneration

from .distance import relative_error
from .greedy import forbid, greedy
from .places import Place, Places, Stopwatch, move
from .results import Agreement, JobResult, Rate, Table
from .speech_samples import SAMPLE_RATE, Recording
from .whisper_weights import END_OF_TEXT, VOCABULARY
from .words import words, wrong_words

START_OF_TRANSCRIPT = 50258
TRANSCRIBE = 50359
NO_TIMESTAMPS = 50363
MAX_NEW_TOKENS = 60
# Bounds for the device in bf16 against the CPU in fp32. Words that Whisper-base mishears in both
# dtypes may be spelt in another way.
MAX_WORD_DIFFERENCE = 0.10
MAX_ENCODER_ERROR = 0.05


class Listener:
    """Whisper at one place: log-mel features in, language and tokens out."""

    def __init__(self, place: Place, *, weights: Path) -> None:
        self.place = place
        self.model = WhisperForConditionalGeneration.from_pretrained(weights, dtype=place.dtype)
        move(self.model, place.device)
        ids = json.loads((weights / "token_ids.json").read_text(encoding="utf-8"))
        self.languages: list[int] = ids["lang_ids"]
        self.bias = self._forbid(ids["suppress_ids"])
        self.first_bias = self._forbid(ids["suppress_ids_begin"])
        self.not_a_language = self._forbid(sorted(set(range(VOCABULARY)) - set(self.languages)))

    def _forbid(self, tokens: list[int]) -> Tensor:
        return forbid(tokens, vocabulary=VOCABULARY, device=self.place.device)

    @torch.inference_mode()
    def encode(self, features: Tensor) -> Any:
        """What the encoder makes of the features [1, 80, 3000]."""
        return self.model.model.encoder(features.to(self.place.device, self.place.dtype))

    @torch.inference_mode()
    def decode(
        self, encoded: Any, *, max_new_tokens: int = MAX_NEW_TOKENS
    ) -> tuple[int, list[int]]:
        """The language's token, and the tokens of the transcript."""
        (language,) = greedy(
            self._next_logits(encoded),
            torch.tensor([[START_OF_TRANSCRIPT]], device=self.place.device),
            max_new_tokens=1,
            end_token=END_OF_TEXT,
            bias=self.not_a_language,
        )
        start = [START_OF_TRANSCRIPT, language, TRANSCRIBE, NO_TIMESTAMPS]
        tokens = greedy(
            self._next_logits(encoded),
            torch.tensor([start], device=self.place.device),
            max_new_tokens=max_new_tokens,
            end_token=END_OF_TEXT,
            bias=self.bias,
            first_bias=self.first_bias,
        )
        return language, tokens

    def _next_logits(self, encoded: Any) -> Callable[[Tensor], Tensor]:
        cache = None

        def next_logits(tokens: Tensor) -> Tensor:
            nonlocal cache
            output = self.model(
                encoder_outputs=encoded,
                decoder_input_ids=tokens,
                past_key_values=cache,
                use_cache=True,
            )
            cache = output.past_key_values
            logits: Tensor = output.logits[0, -1]
            return logits

        return next_logits


@dataclass(frozen=True, kw_only=True)
class Heard:
    """A transcript, and the encoder's output it was made from, in fp32 on the CPU."""

    language: str
    text: str
    encoded: Tensor


def transcribe(
    recordings: Sequence[Recording],
    places: Places,
    *,
    weights: Path,
    advance: Callable[[], None],
) -> JobResult:
    """Transcribe each recording at each place; calls `advance` after each of them."""
    tokenizer = Tokenizer.from_file(str(weights / "tokenizer.json"))
    extract = WhisperFeatureExtractor()  # type: ignore[no-untyped-call]
    listeners = {place.label: Listener(place, weights=weights) for place in places.in_turn(0)}
    watches = {label: Stopwatch() for label in listeners}
    heard: dict[str, list[Heard]] = {label: [] for label in listeners}
    for turn, recording in enumerate(recordings):
        features = extract(recording.samples, sampling_rate=SAMPLE_RATE, return_tensors="pt")
        if turn == 0:
            _warm_up(listeners, features.input_features)
        for place in places.in_turn(turn):
            listener = listeners[place.label]
            with watches[place.label].measure(place):
                encoded = listener.encode(features.input_features)
                language, tokens = listener.decode(encoded)
            heard[place.label].append(
                Heard(
                    language=str(tokenizer.id_to_token(language)).strip("<|>"),
                    text=tokenizer.decode(tokens).strip(),
                    encoded=encoded.last_hidden_state.float().cpu(),
                )
            )
            advance()
    return _result(recordings, places, watches, heard)


def _warm_up(listeners: dict[str, Listener], features: Tensor) -> None:
    for listener in listeners.values():
        listener.decode(listener.encode(features), max_new_tokens=2)


def _result(
    recordings: Sequence[Recording],
    places: Places,
    watches: dict[str, Stopwatch],
    heard: dict[str, list[Heard]],
) -> JobResult:
    seconds = sum(recording.seconds for recording in recordings)

    def rate(place: Place) -> Rate:
        return Rate(place=place.label, amount=seconds, seconds=sum(watches[place.label].seconds))

    reference = heard[places.reference.label]

    def word_difference(place: Place) -> float:
        pairs = list(zip(heard[place.label], reference, strict=True))
        wrong = sum(wrong_words(ours.text, theirs.text) for ours, theirs in pairs)
        return wrong / sum(len(words(theirs.text)) for _, theirs in pairs)

    def encoder_error(place: Place) -> float:
        pairs = zip(heard[place.label], reference, strict=True)
        return max(relative_error(ours.encoded, theirs.encoded) for ours, theirs in pairs)

    return JobResult(
        name="Speech to text",
        model="Whisper-base, 73 M parameters",
        unit="audio s/s",
        device=rate(places.device),
        cpu=rate(places.cpu),
        reference=rate(places.reference),
        agreements=[
            Agreement(
                what="words that differ",
                device=word_difference(places.device),
                cpu=word_difference(places.cpu),
                bound=MAX_WORD_DIFFERENCE,
                form=".1%",
            ),
            Agreement(
                what="relative error of the encoder",
                device=encoder_error(places.device),
                cpu=encoder_error(places.cpu),
                bound=MAX_ENCODER_ERROR,
                form=".2%",
            ),
        ],
        tables=[_transcripts(recordings, places, heard)],
    )


def _transcripts(
    recordings: Sequence[Recording], places: Places, heard: dict[str, list[Heard]]
) -> Table:
    rows = []
    ours = heard[places.device.label]
    theirs = heard[places.reference.label]
    for recording, device, reference in zip(recordings, ours, theirs, strict=True):
        wrong = wrong_words(device.text, recording.text)
        same = "the same" if device.text == reference.text else reference.text
        error = f"{wrong} of {len(words(recording.text))}"
        rows.append([device.language, recording.text, device.text, error, same])
    header = ["heard", "what was said", f"{places.device.label} wrote", "wrong words", "CPU fp32"]
    return Table(title="Transcripts", header=header, rows=rows)

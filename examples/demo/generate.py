"""Job: text from SmolLM2-135M."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoTokenizer, DynamicCache, LlamaForCausalLM

from .distance import relative_error
from .greedy import greedy
from .places import Place, Places, Stopwatch, move
from .results import Agreement, JobResult, Rate, Table

END_OF_MESSAGE = 2
QUESTIONS = (
    "What is the capital of France, and what is it famous for?",
    "Write a Python function that returns the sum of the squares of a list.",
    "Explain in two sentences why the sky is blue.",
)
# Bounds for the device in bf16 against the CPU in fp32, over the text that fp32 wrote.
MAX_OTHER_TOKENS = 0.08
MAX_LOGIT_ERROR = 0.03


class Writer:
    """SmolLM2 at one place: tokens in, tokens out."""

    def __init__(self, place: Place, *, weights: Path) -> None:
        self.place = place
        self.model = LlamaForCausalLM.from_pretrained(weights, dtype=place.dtype)
        move(self.model, place.device)

    @torch.inference_mode()
    def write(self, prompt: Tensor, *, max_new_tokens: int) -> list[int]:
        """The most probable continuation of `prompt` [1, n]."""
        cache = DynamicCache(config=self.model.config)

        def next_logits(tokens: Tensor) -> Tensor:
            output = self.model(tokens, past_key_values=cache, use_cache=True, logits_to_keep=1)
            logits: Tensor = output.logits[0, -1]
            return logits

        return greedy(
            next_logits,
            prompt.to(self.place.device),
            max_new_tokens=max_new_tokens,
            end_token=END_OF_MESSAGE,
        )

    @torch.inference_mode()
    def read(self, tokens: Tensor, *, num_last: int) -> Tensor:
        """The logits [num_last, vocabulary] at the end of a text [1, n], in fp32 on the CPU."""
        output = self.model(tokens.to(self.place.device), use_cache=False, logits_to_keep=num_last)
        logits: Tensor = output.logits[0].float().cpu()
        return logits


def generate(
    questions: Sequence[str],
    places: Places,
    *,
    weights: Path,
    max_new_tokens: int,
    advance: Callable[[], None],
) -> JobResult:
    """Answer each question at each place; calls `advance` after each answer."""
    tokenizer = AutoTokenizer.from_pretrained(weights)
    writers = {place.label: Writer(place, weights=weights) for place in places.in_turn(0)}
    watches = {label: Stopwatch() for label in writers}
    prompts = [_prompt(tokenizer, question) for question in questions]
    answers: dict[str, list[list[int]]] = {label: [] for label in writers}
    for writer in writers.values():
        writer.write(prompts[0], max_new_tokens=4)  # nothing is measured on a first call
    for turn, prompt in enumerate(prompts):
        for place in places.in_turn(turn):
            with watches[place.label].measure(place):
                tokens = writers[place.label].write(prompt, max_new_tokens=max_new_tokens)
            answers[place.label].append(tokens)
            advance()
    return JobResult(
        name="Text generation",
        model="SmolLM2-135M-Instruct",
        unit="tokens/s",
        device=_rate(places.device, answers, watches),
        cpu=_rate(places.cpu, answers, watches),
        reference=_rate(places.reference, answers, watches),
        agreements=_agreements(places, prompts, answers[places.reference.label], writers),
        tables=[_answers(questions, places, answers, tokenizer)],
    )


def _prompt(tokenizer: Any, question: str) -> Tensor:
    message = [{"role": "user", "content": question}]
    text = tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)
    ids: Tensor = tokenizer(text, return_tensors="pt").input_ids
    return ids


def _rate(place: Place, answers: dict[str, list[list[int]]], watches: dict[str, Stopwatch]) -> Rate:
    written = sum(len(answer) for answer in answers[place.label])
    return Rate(place=place.label, amount=written, seconds=sum(watches[place.label].seconds))


def _agreements(
    places: Places,
    prompts: Sequence[Tensor],
    written: Sequence[list[int]],
    writers: dict[str, Writer],
) -> list[Agreement]:
    # Two greedy texts part for good at the first near-tie. So each place reads the text that fp32
    # wrote, and names its next token at every position.
    def read(place: Place) -> Tensor:
        texts = zip(prompts, written, strict=True)
        return torch.cat(
            [
                writers[place.label].read(
                    torch.cat([prompt, torch.tensor([answer])], dim=1), num_last=len(answer) + 1
                )
                for prompt, answer in texts
            ]
        )

    device, cpu, reference = (read(p) for p in (places.device, places.cpu, places.reference))

    def other_tokens(logits: Tensor) -> float:
        return float((logits.argmax(-1) != reference.argmax(-1)).float().mean())

    return [
        Agreement(
            what="next tokens that differ",
            device=other_tokens(device),
            cpu=other_tokens(cpu),
            bound=MAX_OTHER_TOKENS,
            form=".1%",
        ),
        Agreement(
            what="relative error of the logits",
            device=relative_error(device, reference),
            cpu=relative_error(cpu, reference),
            bound=MAX_LOGIT_ERROR,
            form=".2%",
        ),
    ]


def _answers(
    questions: Sequence[str],
    places: Places,
    answers: dict[str, list[list[int]]],
    tokenizer: Any,
) -> Table:
    rows = []
    ours = answers[places.device.label]
    theirs = answers[places.reference.label]
    for question, device, reference in zip(questions, ours, theirs, strict=True):
        shared = 0
        while shared < min(len(device), len(reference)) and device[shared] == reference[shared]:
            shared += 1
        same = "all" if device == reference else f"first {shared} of {len(reference)}"
        rows.append([question, tokenizer.decode(device, skip_special_tokens=True), same])
    header = ["question", f"{places.device.label} wrote", "tokens as CPU fp32"]
    return Table(title="Answers", header=header, rows=rows)

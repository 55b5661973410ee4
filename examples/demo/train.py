"""Job: train a small GPT on Shakespeare."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

import torch
from torch import Tensor, nn
from torch.nn import functional

from .chart import chart
from .gpt import GPT, GPTConfig
from .places import Place, Places, Stopwatch
from .results import Agreement, JobResult, Rate, Table
from .shakespeare_text import HELD_OUT, TRAINING, batch, plays

BATCH_SIZE = 8
NUM_HELD_OUT = 32
PEAK_LEARNING_RATE = 1e-3
WARM_UP_STEPS = 40
# Without bf16 instructions a CPU takes seconds for a step in bf16: it stops after this long, and
# rates compare the steps that all three made.
CPU_BUDGET_SECONDS = 30.0
MIN_CPU_STEPS = 4
SAMPLE_LENGTH = 240
# Bounds for the device in bf16 against the CPU in fp32.
MAX_LOSS_DIFFERENCE = 0.05
MAX_MEAN_LOSS_DIFFERENCE = 0.01
MAX_LOSS_LEFT = 0.75


class Learner:
    """The model with its optimizer at one place; fp32 weights, computing in the place's dtype."""

    def __init__(self, place: Place, model: GPT, *, num_steps: int) -> None:
        self.place = place
        self.model = deepcopy(model).to(place.device)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=PEAK_LEARNING_RATE, betas=(0.9, 0.99), weight_decay=0.1
        )
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: learning_rate_factor(step, num_steps=num_steps)
        )

    def step(self, stretches: Tensor) -> float:
        """One optimizer step on the stretches of text; returns the loss before it."""
        loss = self._loss(stretches)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.schedule.step()
        return float(loss.detach())

    @torch.no_grad()
    def loss(self, stretches: Tensor) -> float:
        """The mean loss on the stretches of text."""
        return float(self._loss(stretches))

    def _loss(self, stretches: Tensor) -> Tensor:
        stretches = stretches.to(self.place.device)
        with self._autocast():
            logits = self.model(stretches[:, :-1])
        return functional.cross_entropy(logits.float().flatten(0, 1), stretches[:, 1:].flatten())

    def _autocast(self) -> AbstractContextManager[object]:
        if self.place.dtype is torch.float32:
            return nullcontext()
        return torch.autocast(self.place.device.type, dtype=self.place.dtype)

    @torch.no_grad()
    def sample(self, prompt: str, *, length: int, seed: int) -> str:
        """`prompt` with `length` characters drawn from the model after it."""
        torch.manual_seed(seed)
        codes = torch.tensor([list(prompt.encode("ascii"))], device=self.place.device)
        for _ in range(length):
            with self._autocast():
                logits = self.model(codes[:, -self.model.config.context :])[:, -1]
            drawn = torch.multinomial(torch.softmax(logits.float() / 0.8, dim=-1), 1)
            codes = torch.cat([codes, drawn], dim=1)
        return bytes(codes[0].tolist()).decode("ascii")


def learning_rate_factor(step: int, *, num_steps: int) -> float:
    """Linear warm-up, then half a cosine down to a tenth."""
    if step < WARM_UP_STEPS:
        return (step + 1) / WARM_UP_STEPS
    done = (step - WARM_UP_STEPS) / max(1, num_steps - WARM_UP_STEPS)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * done))


@dataclass(frozen=True, kw_only=True)
class Run:
    """What the training left: losses by step, seconds by step, and the held-out loss."""

    losses: dict[str, list[float]]
    watches: dict[str, Stopwatch]
    held_out_before: float
    held_out_after: dict[str, float]
    sample: str


def train(
    places: Places, *, downloads: Path, num_steps: int, advance: Callable[[str], None]
) -> JobResult:
    """Train at each place on the same batches; calls `advance` with the loss after each step."""
    torch.manual_seed(0)
    model = GPT(GPTConfig())
    learners = [Learner(place, model, num_steps=num_steps) for place in places.in_turn(0)]
    run = _run(learners, places, downloads=downloads, num_steps=num_steps, advance=advance)
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    return _result(run, places, num_parameters=num_parameters, context=model.config.context)


def _run(
    learners: list[Learner],
    places: Places,
    *,
    downloads: Path,
    num_steps: int,
    advance: Callable[[str], None],
) -> Run:
    text = plays(TRAINING, downloads=downloads)
    generator = torch.Generator().manual_seed(0)
    context = learners[0].model.config.context
    held_out = batch(
        plays(HELD_OUT, downloads=downloads),
        size=NUM_HELD_OUT,
        context=context,
        generator=generator,
    )
    by_label = {learner.place.label: learner for learner in learners}
    watches = {label: Stopwatch() for label in by_label}
    losses: dict[str, list[float]] = {label: [] for label in by_label}
    device, reference = by_label[places.device.label], by_label[places.reference.label]
    before = device.loss(held_out)
    for step in range(num_steps):
        stretches = batch(text, size=BATCH_SIZE, context=context, generator=generator)
        for place in places.in_turn(step):
            if place is places.cpu and _is_spent(watches[place.label]):
                continue
            with watches[place.label].measure(place):
                loss = by_label[place.label].step(stretches)
            losses[place.label].append(loss)
        advance(f"loss {losses[device.place.label][-1]:.2f}")
    after = {learner.place.label: learner.loss(held_out) for learner in (device, reference)}
    sample = device.sample("HAMLET.\n", length=SAMPLE_LENGTH, seed=1)
    return Run(
        losses=losses,
        watches=watches,
        held_out_before=before,
        held_out_after=after,
        sample=sample,
    )


def _is_spent(watch: Stopwatch) -> bool:
    return len(watch.seconds) >= MIN_CPU_STEPS and sum(watch.seconds) > CPU_BUDGET_SECONDS


def _result(run: Run, places: Places, *, num_parameters: int, context: int) -> JobResult:
    num_shared = len(run.watches[places.cpu.label].seconds)

    def rate(place: Place) -> Rate:
        # The median step; the first one is slow for reasons of its own.
        seconds = median(run.watches[place.label].seconds[1:num_shared])
        return Rate(place=place.label, amount=BATCH_SIZE * context, seconds=seconds)

    reference = run.losses[places.reference.label]
    device = _differences(run.losses[places.device.label], reference)
    # The CPU's curve tells what bf16 alone does only if it is a whole one.
    whole = num_shared == len(reference)
    cpu = _differences(run.losses[places.cpu.label], reference) if whole else None
    after = run.held_out_after[places.device.label]
    return JobResult(
        name="Training",
        model=f"GPT, {num_parameters / 1e6:.1f} M parameters",
        unit="tokens/s",
        device=rate(places.device),
        cpu=rate(places.cpu),
        reference=rate(places.reference),
        agreements=[
            Agreement(
                what="loss, largest difference",
                device=max(device),
                cpu=max(cpu) if cpu else None,
                bound=MAX_LOSS_DIFFERENCE,
                form=".4f",
            ),
            Agreement(
                what="loss, mean difference",
                device=fmean(device),
                cpu=fmean(cpu) if cpu else None,
                bound=MAX_MEAN_LOSS_DIFFERENCE,
                form=".4f",
            ),
            Agreement(
                what="held-out loss left of the first",
                device=after / run.held_out_before,
                cpu=None,
                bound=MAX_LOSS_LEFT,
                form=".1%",
            ),
        ],
        tables=[_losses(run, places), _sample(run, places)],
        chart=chart(
            run.losses[places.device.label],
            title=f"loss of {places.device.label} over {len(reference)} steps",
        ),
        curves=run.losses,
    )


def _differences(ours: list[float], theirs: list[float]) -> list[float]:
    return [abs(a - b) for a, b in zip(ours, theirs, strict=True)]


def _losses(run: Run, places: Places) -> Table:
    ours, theirs = run.losses[places.device.label], run.losses[places.reference.label]
    stride = max(1, len(ours) // 5)
    shown = sorted({*range(0, len(ours), stride), len(ours) - 1})
    rows = [[str(step + 1), f"{ours[step]:.4f}", f"{theirs[step]:.4f}"] for step in shown]
    held_out = [run.held_out_after[place.label] for place in (places.device, places.reference)]
    rows.append(["held out", *(f"{loss:.4f}" for loss in held_out)])
    header = ["step", places.device.label, places.reference.label]
    return Table(title="Loss", header=header, rows=rows)


def _sample(run: Run, places: Places) -> Table:
    header = [f"{places.device.label} wrote after its training"]
    return Table(title="Sample", header=header, rows=[[run.sample]])

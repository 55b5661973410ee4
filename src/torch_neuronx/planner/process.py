"""Runs a request in a process of its own, so that nothing of the program stays in this one.

A fork of this process has PyTorch loaded already and starts at once. That is safe only while this
process has no second thread and has not used the device; otherwise a fresh interpreter is started.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch_neuronx import _C, registration, settings
from torch_neuronx.device.driver import platform
from torch_neuronx.planner import child

_POLL_SECONDS = 0.01


def run(
    request: dict[str, Any], changes: Mapping[str, str | None], timeout_seconds: float
) -> tuple[dict[str, Any] | None, str]:
    """The result of `child.main` under a changed environment, and what the program printed.

    The result is None when the process ended without one.

    Raises:
        TimeoutError: it did not end in time; it is killed.
    """
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "request.json", Path(folder) / "result.json"
        log = Path(folder) / "log.txt"
        asked.write_text(json.dumps(request))
        with log.open("wb") as output:
            start = _fork if _may_fork() else _spawn
            start(asked, answered, changes, output.fileno(), timeout_seconds)
        text = log.read_text(errors="replace")
        if not answered.is_file():
            return None, text
        return json.loads(answered.read_text()), text


def _may_fork() -> bool:
    return not _C._is_used() and threading.active_count() == 1 and sys.platform == "linux"


def _spawn(
    asked: Path,
    answered: Path,
    changes: Mapping[str, str | None],
    output: int,
    timeout_seconds: float,
) -> None:
    command = [sys.executable, "-m", "torch_neuronx.planner.child", str(asked), str(answered)]
    try:
        subprocess.run(
            command,
            env=settings.environment(changes),
            stdout=output,
            stderr=output,
            timeout=timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError from None


def _fork(
    asked: Path,
    answered: Path,
    changes: Mapping[str, str | None],
    output: int,
    timeout_seconds: float,
) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.dup2(output, 1)
            os.dup2(output, 2)
            settings.adopt(changes)
            platform.cache_clear()
            registration.model_machine()
            status = child.main(str(asked), str(answered))
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            # Neither the parent's exit handlers nor its open files are the child's to end.
            os._exit(status)
    deadline = time.monotonic() + timeout_seconds
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise TimeoutError
        time.sleep(_POLL_SECONDS)

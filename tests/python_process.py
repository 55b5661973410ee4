"""A fresh Python for tests of what happens at import, at exit, and under other settings."""

from __future__ import annotations

import os
import subprocess
import sys

_OURS = ("NEURON_", "TORCH_NEURONX_", "TORCH_DEVICE_BACKEND_AUTOLOAD")


def run_python(code: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run `code` with no settings of ours but `settings`."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith(_OURS)}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, **settings},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def output_of(code: str, **settings: str) -> str:
    """What `code` prints; the test fails with its errors if it ends badly."""
    done = run_python(code, **settings)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()

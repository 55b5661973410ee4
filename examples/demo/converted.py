"""A folder of converted weights is either whole or not there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path


def converted_folder(folder: Path, convert: Callable[[Path], None]) -> Path:
    """Return `folder`, filled by `convert` beforehand if it does not exist yet."""
    if not folder.exists():
        unfinished = folder.with_name(folder.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        convert(unfinished)
        unfinished.rename(folder)
    return folder

"""What documents name exists, and no file tells of the machine it was written on."""

from __future__ import annotations

import re
import subprocess

import pytest

from policy.sources import ROOT, shown

_PATH = re.compile(r"`((?:src|tests|docs|examples|benchmarks|\.ci)/[^`\s*<>{}]*)`")
_LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
_CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_MACHINE = re.compile(r"/root/|/home/[a-z]")


def pages():
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", pages(), ids=shown)
def test_paths_in_a_page_exist(page):
    text = page.read_text()
    missing = [path for path in _PATH.findall(text) if not (ROOT / path.partition(":")[0]).exists()]
    # `kernel[2](x)` in a block of code only looks like a link.
    prose = _CODE.sub("", text)
    missing += [link for link in _LINK.findall(prose) if not (page.parent / link).exists()]
    assert not missing, missing


def test_tracked_files_name_no_place_of_a_machine():
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout: the list of tracked files is unknown")
    wrong = []
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if name == shown(ROOT / "tests/policy/test_documents.py") or not path.is_file():
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        wrong += [f"{name}: {match}" for match in sorted(set(_MACHINE.findall(text)))]
    assert not wrong, wrong

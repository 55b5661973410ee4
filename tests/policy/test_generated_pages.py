"""Pages that are derived from code are what the code says now."""

from __future__ import annotations

import importlib.util

import pytest

from policy.sources import ROOT


def generator():
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(generator().PAGES))
def test_a_derived_page_is_current(name):
    page = generator().PAGES[name]()
    assert (ROOT / "docs" / name).read_text() == page, "run `make docs`"

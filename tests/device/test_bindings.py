"""The stub of the C++ extension says what the extension has, no more and no less."""

from __future__ import annotations

import ast

from policy.sources import SRC, tree
from torch_neuronx import _C


def test_the_stub_and_the_extension_have_the_same_functions():
    stub = {
        node.name
        for node in tree(SRC / "torch_neuronx" / "_C.pyi").body
        if isinstance(node, ast.FunctionDef)
    }
    built = {name for name in dir(_C) if not name.startswith("__")}
    assert stub == built

"""Every function of the public interface exists with the same parameters and defaults."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl

LINES = [
    line
    for line in (Path(__file__).parent / "inventory.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
NAMESPACES = {"nisa": nisa, "nl": nl, "ncc": ncc, "tensor": nl.NkiTensor}


def _parameters(line: str) -> tuple[str, str, list[str], dict[str, str]]:
    head, _, rest = line.partition("(")
    namespace, _, name = head.partition(".")
    body = rest.rpartition(")")[0].replace("Ellipsis", "...")
    node = ast.parse(f"def f({body}): pass").body[0] if _parses(body) else None
    assert isinstance(node, ast.FunctionDef), line
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    names = [argument.arg for argument in arguments]
    defaults = {
        argument.arg: ast.unparse(value)
        for argument, value in zip(
            node.args.args[len(node.args.args) - len(node.args.defaults) :],
            node.args.defaults,
            strict=True,
        )
    }
    return namespace, name, names, defaults


def _parses(body: str) -> bool:
    try:
        ast.parse(f"def f({body}): pass")
    except SyntaxError:
        return False
    return True


@pytest.mark.parametrize("line", LINES, ids=[line.partition("(")[0] for line in LINES])
def test_function_has_the_documented_parameters(line):
    namespace, name, names, defaults = _parameters(line)
    function = getattr(NAMESPACES[namespace], name)
    if name == "ReplicaGroup":
        assert inspect.isclass(function)
        return
    signature = inspect.signature(function)
    ours = [p for p in signature.parameters if p != "self"]
    assert ours[: len(names)] == names or sorted(ours) == sorted(names)
    for parameter, text in defaults.items():
        assert signature.parameters[parameter].default is not inspect.Parameter.empty, parameter
        ours_default = signature.parameters[parameter].default
        try:
            expected = ast.literal_eval(text)
        except ValueError:
            assert getattr(ours_default, "name", text).split(".")[-1] in text or text == "..."
            continue
        if expected is ...:
            continue
        if isinstance(expected, list):
            expected = tuple(expected)
        assert ours_default == expected, (parameter, ours_default, expected)


def test_inventory_counts_match_the_documentation():
    counts = {space: sum(line.startswith(f"{space}.") for line in LINES) for space in NAMESPACES}
    assert counts["nisa"] == 52 + 2
    assert counts["ncc"] == 11 + 1
    assert counts["nl"] >= 103
    assert counts["tensor"] >= 15


@pytest.mark.parametrize(
    ("owner", "members"),
    [
        (nisa.engine, {"unknown": 0, "tensor": 1, "scalar": 2, "gpsimd": 3, "dma": 4, "vector": 5}),
        (nisa.reduce_cmd, {"idle": 0, "reset": 1, "reduce": 2, "reset_reduce": 3}),
        (nisa.dge_mode, {"unknown": 0, "swdge": 1, "hwdge": 2, "none": 3}),
        (nisa.oob_mode, {"error": 0, "skip": 1}),
        (nisa.nc_version, {"gen2": 2, "gen3": 3, "gen4": 4}),
        (nisa.matmul_perf_mode, {"none": "none", "double_row": "double_row"}),
        (nisa.dma_engine, {"dma": 1, "gpsimd_dma": 2}),
    ],
)
def test_enum_has_the_documented_values(owner, members):
    assert {name: owner[name].value for name in members} == members


def test_tile_sizes_follow_the_chip(monkeypatch):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn2")
    assert (nl.tile_size.pmax, nl.tile_size.psum_fmax, nl.tile_size.psum_bank_fmax) == (
        128,
        512,
        512,
    )
    assert nl.tile_size.sbuf_size_bytes == 28 * 2**20
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn1")
    assert nl.tile_size.sbuf_size_bytes == 24 * 2**20


def test_older_names_stay():
    assert nisa.vector_engine is nisa.engine.vector
    assert nisa.constants.oob_mode is nisa.oob_mode
    assert nki.dtype.float8_e4m3 == "float8_e4m3"
    assert nl.hbm is nl.private_hbm

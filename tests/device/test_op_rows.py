"""The rows of what the chip cannot run: each names something that exists, with one reason."""

from __future__ import annotations

import pytest
import torch

import neuron_chip
from torch_neuronx.ops.dtypes import dtype_notes
from torch_neuronx.ops.unsupported import FAMILIES, UnsupportedFamily, reasons_by_operator


def all_operators():
    return torch._C._dispatch_get_all_op_names()


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_name_of_a_family_is_an_operator(family):
    names = set(all_operators())
    bases = {name.partition(".")[0] for name in names}
    missing = [
        op
        for op in family.ops
        if not (
            any(base.startswith(op[:-1]) for base in bases)
            if op.endswith("*")
            else op in names or op in bases
        )
    ]
    assert not missing


def test_no_operator_is_in_two_families():
    for operator in reasons_by_operator(all_operators()):
        families = [
            family.name
            for family in FAMILIES
            if reasons_of(family).get(operator) is not None and operator in reasons_of(family)
        ]
        assert len(families) == 1, (operator, families)


def reasons_of(family: UnsupportedFamily) -> dict[str, str]:
    if family.name not in _CACHE:
        found = {}
        for operator in all_operators():
            base = operator.partition(".")[0]
            if any(
                operator.startswith(op[:-1]) if op.endswith("*") else op in (operator, base)
                for op in family.ops
            ):
                found[operator] = family.reason
        _CACHE[family.name] = found
    return _CACHE[family.name]


_CACHE: dict[str, dict[str, str]] = {}


def test_a_name_stands_for_its_overloads_and_one_with_a_dot_for_itself():
    reasons = reasons_by_operator(all_operators())
    assert {"aten::nonzero", "aten::nonzero.out", "aten::sort.stable"} <= set(reasons)
    assert "aten::repeat_interleave.Tensor" in reasons
    assert "aten::repeat_interleave.self_int" not in reasons
    assert "aten::nonzero_static" not in reasons
    assert "aten::mm" not in reasons


def test_a_reason_without_a_full_stop_is_refused():
    with pytest.raises(AssertionError, match="no sentence"):
        UnsupportedFamily(name="x", reason="because", ops=("aten::mm",))


def test_dtypes_depend_on_the_chip():
    def fallback(chip):
        return {note.dtype for note in dtype_notes(chip) if not note.exact_here}

    trn2, trn3 = neuron_chip.chip("trn2"), neuron_chip.chip("trn3")
    assert torch.float64 in fallback(trn2) & fallback(trn3)
    assert torch.float8_e4m3fn in fallback(trn2)
    assert torch.float8_e4m3fn not in fallback(trn3)
    assert torch.float8_e5m2 not in fallback(trn2) | fallback(trn3)
    assert torch.bfloat16 not in fallback(trn2)


def test_64_bit_integers_are_notes_only():
    notes = {note.dtype: note for note in dtype_notes(neuron_chip.chip("trn2"))}
    assert notes[torch.int64].exact_here
    assert torch.int32 not in notes
